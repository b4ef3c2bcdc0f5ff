package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// depot is the service that scripts reach at $DEPOT (the host and port is $DEPOT_AT):
// things by path, with versions; POST makes one below the path, and knows its key;
// POST to /chat is told. GET / lists all of it.
type depot struct {
	mu       sync.Mutex
	things   map[string]string
	versions map[string]int
	keys     map[string]string
	messages int
}

// startDepot is for the Setup of scripts.
func startDepot(e *testscript.Env) {
	d := &depot{things: map[string]string{}, versions: map[string]int{}, keys: map[string]string{}}
	server := httptest.NewServer(d)
	e.Defer(server.Close)
	e.Setenv("DEPOT", server.URL)
	e.Setenv("DEPOT_AT", server.Listener.Addr().String())
}

func (d *depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	path, status, answer := d.handle(r, string(body))
	if path != "" {
		w.Header().Set("ETag", `"`+strconv.Itoa(d.versions[path])+`"`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

func (d *depot) handle(r *http.Request, body string) (path string, status int, answer string) {
	path = r.URL.Path
	was, there := d.things[path]
	put := func(path, body string) {
		d.things[path] = body
		d.versions[path]++
	}
	match := r.Header.Get("If-Match")
	switch {
	case path == "/":
		return "", http.StatusOK, d.list()
	case path == "/chat":
		d.messages++
		return "", http.StatusOK, "{}"
	case r.Method == http.MethodPost:
		id := strconv.Itoa(len(d.versions) + 1)
		made := map[string]any{}
		_ = json.Unmarshal([]byte(body), &made)
		made["id"] = id
		text, _ := json.Marshal(made)
		put(path+"/"+id, string(text))
		d.keys[r.Header.Get("Idempotency-Key")] = path + "/" + id
		return path + "/" + id, http.StatusCreated, string(text)
	case r.Method == http.MethodGet && r.URL.Query().Has("key"):
		if made, ok := d.things[d.keys[r.URL.Query().Get("key")]]; ok {
			return "", http.StatusOK, made
		}
		return "", http.StatusNotFound, ""
	case !there && r.Method != http.MethodPut:
		return "", http.StatusNotFound, ""
	case r.Method == http.MethodGet:
		return path, http.StatusOK, was
	case match != "" && match != `"`+strconv.Itoa(d.versions[path])+`"`, there && r.Header.Get("If-None-Match") == "*":
		return "", http.StatusPreconditionFailed, ""
	case r.Method == http.MethodPut:
		put(path, body)
		return path, http.StatusOK, body
	}
	delete(d.things, path)
	return "", http.StatusNoContent, ""
}

func (d *depot) list() string {
	var lines []string
	for path, thing := range d.things {
		lines = append(lines, path+" "+thing+"\n")
	}
	sort.Strings(lines)
	return strings.Join(lines, "") + fmt.Sprintf("told %d\n", d.messages)
}

// depotForTests is a client of the depot that nobody asks: depot METHOD PATH [BODY].
func depotForTests() {
	body := ""
	if len(os.Args) > 3 {
		body = os.Args[3]
	}
	req, err := http.NewRequest(os.Args[1], os.Getenv("DEPOT")+os.Args[2], strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(os.Stdout, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		os.Exit(1)
	}
}

// expandForTests puts the variables of the script into files: expand FILE...
func expandForTests() {
	for _, name := range os.Args[1:] {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, []byte(os.Expand(string(data), os.Getenv)), 0o600)
		}
		if err != nil {
			panic(err)
		}
	}
}
