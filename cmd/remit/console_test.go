package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// consoleVisitor is a browser that entered a console.
type consoleVisitor struct {
	t       *testing.T
	address string
	cookie  *http.Cookie
}

func enterConsole(t *testing.T, page string) *consoleVisitor {
	t.Helper()
	address, token, found := strings.Cut(page, "/enter#")
	require.True(t, found, page)
	v := &consoleVisitor{t: t, address: address}
	resp := v.post("/enter", url.Values{"token": {token}})
	require.Len(t, resp.Cookies(), 1)
	v.cookie = resp.Cookies()[0]
	return v
}

// do sends a request, and follows no redirect.
func (v *consoleVisitor) do(r *http.Request) *http.Response {
	v.t.Helper()
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(r)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (v *consoleVisitor) get(path string) string {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.address+path, nil)
	require.NoError(v.t, err)
	text, err := io.ReadAll(v.do(r).Body)
	require.NoError(v.t, err)
	return string(text)
}

func (v *consoleVisitor) post(path string, form url.Values) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.address+path, strings.NewReader(form.Encode()))
	require.NoError(v.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", v.address)
	return v.do(r)
}

// hidden returns the value of a field of a page.
func hidden(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `name="`+name+`" value="`)
	require.True(t, found, page)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// startConsole runs remit console, and returns its address. It ends with the
// test.
func startConsole(t *testing.T, w cli.Env, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	opened, ended := make(chan string, 1), make(chan int, 1)
	w.OpenPage = func(page string) error {
		opened <- page
		return errors.New("there is no browser")
	}
	go func() { ended <- run(ctx, append([]string{"console"}, args...), w) }()
	t.Cleanup(func() {
		stop()
		require.Zero(t, <-ended, "a console that is interrupted ends well")
	})
	select {
	case page := <-opened:
		return page
	case code := <-ended:
		ended <- code
		require.FailNow(t, "remit console ended", "%d", code)
		return ""
	}
}

// consolePlace is a workspace in which one call was run.
type consolePlace struct {
	state, rules string
	at           []string // flags
}

// newConsolePlace runs a call that writes a file under some rules.
func newConsolePlace(t *testing.T, ends cli.ExitCode, rules string) consolePlace {
	t.Helper()
	workspace, state := testPlace(t)
	dir := t.TempDir()
	p := consolePlace{state, filepath.Join(dir, "rules.rego"), []string{"--workspace", workspace, "--state", state}}
	script := filepath.Join(dir, "s.jsonl")
	require.NoError(t, os.WriteFile(p.rules, []byte("package remit\n\n"+rules), 0o600))
	require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"a.txt","content":"x\n"}}`+"\n"), 0o600))
	var out bytes.Buffer
	require.Equal(t, int(ends), run(t.Context(), append([]string{"run", "--policy", p.rules, "--on-ask", "wait", "--json", script}, p.at...), jsonEnv(&out)), out.String())
	return p
}

// enter starts the console and enters it.
func (p consolePlace) enter(t *testing.T, flags ...string) *consoleVisitor {
	t.Helper()
	return enterConsole(t, startConsole(t, jsonEnv(io.Discard), append(append([]string{"--numeric"}, flags...), p.at...)...))
}

// link returns the ID in the first link of a page to another one.
func (consolePlace) link(t *testing.T, v *consoleVisitor, from, to string) string {
	t.Helper()
	_, id, found := strings.Cut(v.get(from), `href="`+to+`?id=`)
	require.True(t, found)
	id, _, _ = strings.Cut(id, `"`)
	return id
}

// TestConsole: the command opens the address of its pages, which answer a call
// under the rules of remit approve.
func TestConsole(t *testing.T) {
	p := newConsolePlace(t, cli.ExitPending, "ask contains \"a person looks\" if input.access.action == \"write\"\n\nallow contains \"reads\" if input.access.action == \"read\"\n")
	v := p.enter(t)
	id := p.link(t, v, "/", "/approve")
	page := v.get("/approve?id=" + id)
	require.Contains(t, page, "a person looks")
	form := url.Values{"form": {hidden(t, page, "form")}, "id": {id}, "request": {hidden(t, page, "request")}, "shown": {hidden(t, page, "shown")}, "answer": {"approve"}, "scope": {"once"}}

	require.NoError(t, approval.WriteSettings(p.state, approval.Settings{Passphrase: approval.NewVerifier("a long phrase")}))
	require.Contains(t, v.get("/approve?id="+id), "typed at a terminal")
	require.Equal(t, http.StatusForbidden, v.post("/approve", form).StatusCode)
	require.NoError(t, approval.WriteSettings(p.state, approval.Settings{}))
	require.Equal(t, http.StatusSeeOther, v.post("/approve", form).StatusCode)
	require.Contains(t, v.get("/approve?id="+id), "approved by somebody")
}

// TestConsoleAddress: the console listens on loopback only, and its name is a
// random one.
func TestConsoleAddress(t *testing.T) {
	p := newJSONPlace(t)
	for _, bad := range []string{"0.0.0.0:0", ":0", "localhost:0", "192.0.2.1:0", "127.0.0.1", "[::1]:0", "127.0.0.1:http2"} {
		require.Equal(t, int(cli.ExitUsage), run(t.Context(), append([]string{"console", "--listen", bad}, p.at...), jsonEnv(io.Discard)), bad)
	}
	require.Equal(t, int(cli.ExitUsage), run(t.Context(), []string{"console", "--state", t.TempDir()}, jsonEnv(io.Discard)), "without a journal")
	page := startConsole(t, jsonEnv(io.Discard), p.at...)
	require.Regexp(t, `^http://remit-[0-9a-f]{16}\.localhost:[0-9]+/enter#[A-Za-z0-9_-]{43}$`, page)
}

// TestConsoleCommit: the pages answer a commit that waits under the rules of
// remit approve.
func TestConsoleCommit(t *testing.T) {
	p := newConsolePlace(t, cli.ExitPending, "ask_commit contains \"a person looks\" if count(input.txn.effects) > 0\n\nallow contains \"all\" if input.access.action in {\"read\", \"write\"}\n")
	v := p.enter(t)
	id := p.link(t, v, "/", "/commit")
	page := v.get("/commit?id=" + id)
	require.Contains(t, page, "a person looks")
	form := url.Values{"form": {hidden(t, page, "form")}, "id": {id}, "request": {hidden(t, page, "request")}, "answer": {"approve"}}

	require.NoError(t, approval.WriteSettings(p.state, approval.Settings{Passphrase: approval.NewVerifier("a long phrase")}))
	page = v.get("/commit?id=" + id)
	require.Contains(t, page, "typed at a terminal")
	require.Contains(t, page, "pending")
	require.Equal(t, http.StatusForbidden, v.post("/commit", form).StatusCode)
	require.NoError(t, approval.WriteSettings(p.state, approval.Settings{}))
	require.Equal(t, http.StatusSeeOther, v.post("/commit", form).StatusCode)
	require.Contains(t, v.get("/commit?id="+id), "approved by somebody; its process has ended")
	require.Equal(t, int(cli.ExitOK), run(t.Context(), append([]string{"resume", "--policy", p.rules, "--at-end", "commit", id}, p.at...), jsonEnv(io.Discard)))
	require.Contains(t, v.get("/commit?id="+id), "The transaction is committed")
}

// TestConsoleVerbs: the pages explain a denied call by the policy that decided,
// and show what remit doctor finds.
func TestConsoleVerbs(t *testing.T) {
	p := newConsolePlace(t, cli.ExitDenied, "allow contains \"reads\" if input.access.action == \"read\"\n")
	v := p.enter(t, "--policy", p.rules)
	id := p.link(t, v, "/timeline", "/call")
	require.Contains(t, v.get("/call?id="+id), "Explain it, and let it through from now on")
	page := v.get("/why?id=" + id)
	require.Contains(t, page, "the smallest change that lets it through")
	require.Contains(t, page, "tried: the policy then says allow")

	page = v.get("/health")
	require.NotContains(t, page, "store format")
	require.Equal(t, http.StatusSeeOther, v.post("/health", url.Values{"form": {hidden(t, page, "form")}}).StatusCode)
	page = v.get("/health")
	require.Contains(t, page, "store format")
	require.Contains(t, page, "lies outside every root")
	require.Contains(t, page, "nothing is past 30 days")
}
