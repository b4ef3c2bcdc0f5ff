package web_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
)

// repeating is a service that repeats its credential in every part of a
// response that can hold text, in some encoding.
type repeating struct {
	where atomic.Pointer[string] // "": well-formed responses; else the malformed part, or -lost
	write func(value string) string
	item  atomic.Pointer[string]
	n     atomic.Int64
}

func (s *repeating) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value := s.write(token)
	switch where := *s.where.Load(); {
	case where == "-lost" && r.Method == http.MethodPost:
		panic(http.ErrAbortHandler)
	case where != "" && where != "-lost" && r.Method == http.MethodGet:
		s.breakOff(w, where, value)
		return
	}
	switch {
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		text := b.String()
		s.item.Store(&text)
		s.n.Add(1)
	case r.Method == http.MethodDelete:
		s.item.Store(nil)
	case s.item.Load() == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Etag", fmt.Sprintf("%q", value+fmt.Sprint(s.n.Load())))
	w.Header().Set("Content-Type", "application/"+value)
	w.Header().Set("Location", "/"+value)
	w.Header().Set("X-Other", value)
	answer := map[string]string{"id": "1", "echo": value}
	_ = json.NewEncoder(w).Encode(answer)
}

// breakOff sends a malformed response that contains the value.
func (s *repeating) breakOff(w http.ResponseWriter, where, value string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, map[string]string{
		"-status": "HTTP/1.1 %s\r\n\r\n", "-version": "%s 200 OK\r\n\r\n", "-header": "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
		"-encoding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n", "-length": "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
	}[where], value)
}

// TestRepeatedCredentials checks that no record or message of a call, its
// revert or a redo contains the credential, for every part of a response that
// repeats it.
func TestRepeatedCredentials(t *testing.T) {
	for name, write := range map[string]func(string) string{
		"plain": func(v string) string { return v }, "hex": func(v string) string { return hex.EncodeToString([]byte(v)) },
		"base64": func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
		"query":  url.QueryEscape,
	} {
		for _, where := range []string{"", "-status", "-version", "-header", "-encoding", "-length", "-lost"} {
			if name != "plain" && where != "" && where != "-lost" {
				continue // an error of the client quotes it unchanged
			}
			t.Run(name+where, func(t *testing.T) {
				written := repeats(t, write, where)
				for place, data := range written {
					require.NotContains(t, string(data), write(token), place)
				}
			})
		}
	}
}

func repeats(t *testing.T, write func(string) string, where string) map[string][]byte {
	service := &repeating{write: write}
	fine, first := "", `{"a":1}`
	service.where.Store(&fine)
	service.item.Store(&first)
	api := serve(t, service.ServeHTTP)
	store := storeOf(t, token)
	state := t.TempDir()
	journal, err := sqlite.Open(t.Context(), state)
	require.NoError(t, err)
	var log, told bytes.Buffer
	client := newClient(t, web.Options{Secrets: store, Credentials: []web.Credential{{Origin: api.URL, Secret: "api"}}}, addr(api))
	rt, err := agent.New(agent.Tools(sender(t, nil)), agent.Driver(client), agent.Driver(store), agent.Journal(journal),
		agent.Policy(&policy{}), agent.Log(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	session, err := rt.Session(t.Context(), perm.Principal{ID: "agent"})
	require.NoError(t, err)
	tell := func(v any, err error) {
		text, jerr := json.Marshal(v)
		require.NoError(t, jerr)
		fmt.Fprintf(&told, "%+v %s %v\n", v, text, err)
	}
	tx, err := session.Begin(t.Context())
	require.NoError(t, err)
	for _, r := range []web.Request{
		{Method: http.MethodGet, URL: api.URL + "/item"},
		{Method: http.MethodPut, URL: api.URL + "/item", Body: []byte(`{"a":2}`), Compensation: &web.Compensation{Method: http.MethodPut}},
		{Method: http.MethodPost, URL: api.URL + "/items", Body: []byte(`{"a":3}`), Compensation: &web.Compensation{Item: api.URL + "/items/{id}"}},
		{Method: http.MethodPost, URL: api.URL + "/found", Key: "k", Compensation: &web.Compensation{Item: api.URL + "/items/{echo}", Find: api.URL + "/found?key={key}"}},
		{Method: http.MethodPost, URL: api.URL + "/again", Key: "k", Compensation: &web.Compensation{Item: api.URL + "/items/{echo}", Replays: true}},
		{Method: http.MethodPut, URL: api.URL + "/other", Body: []byte(`{"a":2}`), Compensation: &web.Compensation{Method: http.MethodPut, Before: true}},
	} {
		out, err := tx.Invoke(t.Context(), "send", r)
		tell(out, err)
		service.where.Store(&where)
		out, err = tx.Invoke(t.Context(), "send", r)
		tell(out, err)
		service.where.Store(&fine)
	}
	tell(nil, tx.Commit(t.Context()))
	service.where.Store(&where)
	id := tx.ID()
	plan, err := rt.Preview(t.Context(), id, revert.Options{By: "me"})
	tell(plan, err)
	for range 2 {
		rep, err := session.Revert(t.Context(), id, revert.Options{})
		tell(rep, err)
		service.where.Store(&fine)
	}
	require.NoError(t, rt.Close())
	require.NoError(t, journal.Close())
	written := map[string][]byte{"log": log.Bytes(), "told": told.Bytes()}
	require.NoError(t, filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		written[d.Name()] = data
		return err
	}))
	require.Contains(t, string(written["told"]), "(hidden)")
	return written
}
