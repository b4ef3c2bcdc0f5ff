package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// testEnv is the environment of an agent: a folder with a repository, a folder
// beside it, a database, and a service.
type testEnv struct {
	dir, workspace, outside, database, store string

	service *service
	full    bool // the workspace is a small file system
}

func testEnvAt(dir string) *testEnv {
	return &testEnv{
		dir: dir, workspace: filepath.Join(dir, "ws"), outside: filepath.Join(dir, "outside"),
		database: filepath.Join(dir, "app.db"), store: filepath.Join(dir, "store"),
	}
}

func newTestEnv(dir string, small bool) (*testEnv, error) {
	w := testEnvAt(dir)
	for _, d := range []string{w.workspace, w.outside, w.store} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if small {
		if err := unix.Mount("tmpfs", w.workspace, "tmpfs", 0, "size=8m"); err != nil {
			return nil, fmt.Errorf("a small file system takes the rights of root: %w", err)
		}
		w.full = true
	}
	if err := errors.Join(w.makeTree(), w.makeRows()); err != nil {
		return nil, errors.Join(err, w.close())
	}
	var err error
	w.service, err = newService()
	return w, err
}

func (w *testEnv) close() (err error) {
	if w.service != nil {
		err = w.service.close()
	}
	if w.full {
		err = errors.Join(err, unix.Unmount(w.workspace, 0))
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

func (w *testEnv) path(name string) string { return filepath.Join(w.workspace, name) }

func (w *testEnv) makeTree() error {
	var err error
	put := func(name, content string, mode os.FileMode) {
		path := w.path(name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode))
	}
	put("README.md", "# A project\n\nHello, world.\n", 0o644)
	put("src/main.txt", "one\ntwo\nthree\n", 0o644)
	put("src/other.txt", "other\n", 0o644)
	put("src/deep/a.txt", "a\n", 0o644)
	put("src/deep/b.txt", "b\n", 0o600)
	put("bin/tool", "#!/bin/sh\necho tool\n", 0o755)
	put("pair.txt", "a file of two names\n", 0o644)
	put("data.bin", "\x00\x01\xff\xfe binary \x00", 0o644)
	put(".gitignore", "cache/\n*.log\n", 0o644)
	put("cache/built.o", "built\n", 0o644)
	put("notes.log", "a log\n", 0o640)
	put("new\nline.txt", "its name has a line break\n", 0o644)
	err = errors.Join(err, os.Symlink("src/main.txt", w.path("link")), os.Mkdir(w.path("empty"), 0o755), os.Link(w.path("pair.txt"), w.path("pair.twin")))
	if err != nil {
		return err
	}
	return w.sh(`git init -q . && git config user.name bench && git config user.email bench@example.com && git config gc.auto 0 &&
		git add -A && git commit -qm first && echo more >> src/other.txt && git commit -qam second && find . -exec touch -h -d 2026-01-02T03:04:05 {} +`)
}

// sh runs a script in the workspace, as another actor.
func (w *testEnv) sh(script string) error {
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = w.workspace, gitEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
}

func (w *testEnv) makeRows() error {
	return w.sql(`CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INT);
		INSERT INTO users VALUES (1, 'ann', 30), (2, 'bob', 40), (3, 'cyd', NULL);
		CREATE TABLE posts (id INTEGER PRIMARY KEY, author INT, text TEXT);
		INSERT INTO posts VALUES (1, 1, 'hello'), (2, 2, 'hi');`)
}

// sql runs statements, as another actor.
func (w *testEnv) sql(statements string) error {
	db, err := sql.Open("sqlite", w.database)
	if err != nil {
		return err
	}
	_, err = db.Exec(statements)
	return errors.Join(err, db.Close())
}

// service is a REST service: items under a name of the caller (PUT, DELETE),
// items under a name of its own (POST), which it finds by idempotency key, and
// messages, which cannot be recalled.
type service struct {
	server *http.Server
	at     string

	mu    sync.Mutex
	items map[string]string
	keys  map[string]string // idempotency key to item
	made  int               // items ever created by POST
	drop  bool              // the next effect happens, and its response is lost
	hold  chan struct{}     // the next effect happens, and its response waits forever
}

func newService() (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{at: "http://" + l.Addr().String(), items: map[string]string{"first": `{"text":"first"}`}, keys: map[string]string{}}
	s.server = &http.Server{Handler: s}
	go func() { _ = s.server.Serve(l) }()
	return s, nil
}

func (s *service) close() error { return s.server.Close() }

func (s *service) all() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.items)
}

// ServeHTTP answers a request.
func (s *service) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	s.mu.Lock()
	status, answer := s.act(in, bytes.TrimSpace(body))
	effect := in.Method != http.MethodGet && status < 300
	drop, hold := s.drop && effect, s.hold
	if effect {
		s.drop, s.hold = false, nil
	}
	s.mu.Unlock()
	if effect && hold != nil {
		close(hold)
		<-in.Context().Done() // the client is dead
		return
	}
	if drop {
		panic(http.ErrAbortHandler)
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	_, _ = io.WriteString(out, answer)
}

func (s *service) act(in *http.Request, body []byte) (int, string) {
	name := strings.TrimPrefix(in.URL.Path, "/items/")
	switch {
	case in.Method == http.MethodPost && in.URL.Path == "/messages":
		s.made++
		s.items[fmt.Sprintf("message-%d", s.made)] = string(body)
		return http.StatusAccepted, `{}`
	case in.Method == http.MethodPost:
		return s.create(in, body)
	case in.Method == http.MethodGet && in.URL.Query().Get("key") != "":
		if name, ok := s.keys[in.URL.Query().Get("key")]; ok && s.items[name] != "" {
			return http.StatusOK, `{"data":[` + s.items[name] + `]}`
		}
		return http.StatusOK, `{"data":[]}`
	case in.Method == http.MethodPut:
		s.items[name] = string(body)
		return http.StatusOK, string(body)
	case s.items[name] == "":
		return http.StatusNotFound, `{}`
	case in.Method == http.MethodDelete:
		delete(s.items, name)
		return http.StatusOK, `{}`
	}
	return http.StatusOK, s.items[name]
}

func (s *service) create(in *http.Request, body []byte) (int, string) {
	key := in.Header.Get("Idempotency-Key")
	if name, ok := s.keys[key]; ok && key != "" {
		return http.StatusCreated, s.items[name]
	}
	doc := map[string]any{}
	if json.Unmarshal(body, &doc) != nil {
		return http.StatusBadRequest, `{}`
	}
	s.made++
	name := fmt.Sprintf("n%d", s.made)
	doc["id"] = name
	text, _ := json.Marshal(doc)
	s.items[name] = string(text)
	if key != "" {
		s.keys[key] = name
	}
	return http.StatusCreated, string(text)
}
