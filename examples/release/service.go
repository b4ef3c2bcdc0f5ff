package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// downloadSite is the download site: a REST service with releases, whose IDs it
// chooses, channels, which the client names, and a chat. It stores the key with
// which a release was created, and gives each item a version (ETag), like many
// services.
type downloadSite struct {
	url    string
	server *http.Server

	mu       sync.Mutex
	made     func()                     // called after a release was created, before the response
	things   map[string]json.RawMessage // by path, such as /releases/r1
	versions map[string]int
	keys     map[string]string // key to path
	last     int
	chat     []string
}

// newSite serves on a loopback port.
func newSite(things map[string]string) (*downloadSite, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &downloadSite{url: "http://" + listener.Addr().String(), made: func() {}, things: map[string]json.RawMessage{}, versions: map[string]int{}, keys: map[string]string{}}
	for path, thing := range things {
		s.put(path, json.RawMessage(thing))
		if strings.HasPrefix(path, "/releases/") {
			s.last++
		}
	}
	s.server = &http.Server{Handler: s}
	go func() { _ = s.server.Serve(listener) }() // ends with Close
	return s, nil
}

func (s *downloadSite) put(path string, thing json.RawMessage) {
	s.things[path] = thing
	s.versions[path]++
}

func (s *downloadSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	status, path, answer := s.handle(r, body)
	version, made := s.versions[path], s.made
	s.mu.Unlock()
	if status == http.StatusCreated {
		made()
	}
	w.Header().Set("Content-Type", "application/json")
	if path != "" {
		w.Header().Set("ETag", `"v`+strconv.Itoa(version)+`"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// handle answers one request: its status, its item, and the body.
func (s *downloadSite) handle(r *http.Request, body []byte) (status int, path string, answer []byte) {
	path = r.URL.Path
	old, there := s.things[path]
	switch {
	case path == "/chat" && r.Method == http.MethodPost:
		s.chat = append(s.chat, string(body))
		return http.StatusOK, "", []byte(`{"told":3}`)
	case path == "/releases" && r.Method == http.MethodPost:
		s.last++
		id := "r" + strconv.Itoa(s.last)
		path += "/" + id
		s.put(path, withID(body, id))
		s.keys[r.Header.Get("Idempotency-Key")] = path
		return http.StatusCreated, path, s.things[path]
	case path == "/releases" && r.Method == http.MethodGet:
		found := []json.RawMessage{}
		if thing, ok := s.things[s.keys[r.URL.Query().Get("key")]]; ok {
			found = append(found, thing)
		}
		answer, _ = json.Marshal(map[string]any{"data": found})
		return http.StatusOK, "", answer
	case !there && r.Method != http.MethodPut:
		return http.StatusNotFound, "", nil
	case r.Method == http.MethodGet:
		return http.StatusOK, path, old
	case s.stale(r, there):
		return http.StatusPreconditionFailed, "", nil
	case r.Method == http.MethodPut:
		s.put(path, body)
		return http.StatusOK, path, body
	case r.Method == http.MethodDelete:
		delete(s.things, path)
		return http.StatusNoContent, "", nil
	}
	return http.StatusMethodNotAllowed, "", nil
}

// stale reports whether another client was faster.
func (s *downloadSite) stale(r *http.Request, there bool) bool {
	match := r.Header.Get("If-Match")
	return match != "" && match != `"v`+strconv.Itoa(s.versions[r.URL.Path])+`"` || there && r.Header.Get("If-None-Match") == "*"
}

func withID(body []byte, id string) json.RawMessage {
	thing := map[string]any{}
	_ = json.Unmarshal(body, &thing)
	thing["id"] = id
	out, _ := json.Marshal(thing)
	return out
}

// whenMade makes the site call f after each creation of a release, before the
// response.
func (s *downloadSite) whenMade(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = f
}

// replace changes an item as another client.
func (s *downloadSite) replace(path, thing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(path, json.RawMessage(thing))
}

// state returns everything of the site, by path, without versions.
func (s *downloadSite) state() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for path, thing := range s.things {
		all[path] = string(thing)
	}
	return all
}
