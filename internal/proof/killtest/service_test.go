//go:build linux

package killtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// service is a local service that no kill reaches. It has items under keys,
// with one response for each key; items without keys; and posts that cannot be
// reverted.
type service struct {
	*httptest.Server

	mu    sync.Mutex // never held across a wait
	moved *sync.Cond
	open  map[net.Conn]bool // connections
	items map[string]string // by ID: the name
	byKey map[string]string // IDs
	made  map[string]int    // by name: how often an item of it was created
	posts map[string]int    // by operation key: how often it arrived
	last  int
}

func newService() *service {
	s := &service{
		open: map[net.Conn]bool{}, items: map[string]string{"old": "before"}, byKey: map[string]string{},
		made: map[string]int{}, posts: map[string]int{},
	}
	s.moved = sync.NewCond(&s.mu)
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ConnState = s.connection
	s.Start()
	return s
}

func (s *service) connection(c net.Conn, is http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is == http.StateClosed {
		delete(s.open, c)
	} else {
		s.open[c] = true
	}
	s.moved.Broadcast()
}

// quiet waits until no request of a dead process is in progress. The service
// accepts connections in order of arrival: after it accepted ours, it has
// accepted all of theirs.
func (s *service) quiet() {
	mine, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		panic(err)
	}
	at := mine.LocalAddr().String()
	s.mu.Lock()
	for !s.has(at) {
		s.moved.Wait()
	}
	s.mu.Unlock()
	_ = mine.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) > 0 {
		s.moved.Wait()
	}
}

func (s *service) has(remote string) bool {
	for c := range s.open {
		if c.RemoteAddr().String() == remote {
			return true
		}
	}
	return false
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	s.mu.Lock()
	status, out := s.answer(r, in.Name)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (s *service) answer(r *http.Request, name string) (status int, out any) {
	place, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	key := r.Header.Get("Idempotency-Key")
	switch {
	case place == "posts":
		s.posts[r.Header.Get("X-Operation")]++
		return 200, nil
	case r.Method == http.MethodPost && key != "" && s.byKey[key] != "":
		return 201, s.item(s.byKey[key])
	case r.Method == http.MethodPost:
		s.last++
		id = fmt.Sprint("i", s.last)
		s.made[name]++
		s.items[id] = name
		if key != "" {
			s.byKey[key] = id
		}
		return 201, s.item(id)
	case id == "" && place == "keyed":
		found := []any{}
		if id := s.byKey[r.URL.Query().Get("key")]; s.items[id] != "" {
			found = append(found, s.item(id))
		}
		return 200, map[string]any{"data": found}
	case s.items[id] == "":
		return 404, map[string]any{}
	case r.Method == http.MethodGet:
		return 200, s.item(id)
	case r.Method == http.MethodPut:
		s.items[id] = name
		return 200, s.item(id)
	case r.Method == http.MethodDelete:
		delete(s.items, id)
		return 204, nil
	}
	return 405, map[string]any{}
}

func (s *service) item(id string) map[string]any {
	return map[string]any{"id": id, "name": s.items[id]}
}

// now returns the content of the service.
func (s *service) now() (items map[string]string, made, posts map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.items), maps.Clone(s.made), maps.Clone(s.posts)
}
