package console_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

const host = "remit-test.localhost:4711"

// place is a workspace with a runtime, a console, and a browser that has
// entered.
type place struct {
	t       *testing.T
	dir     string
	rt      *agent.Runtime
	session *agent.Session
	console *console.Console
	cookie  *http.Cookie
	writes  int

	clk *testClock
}

type testClock struct {
	mu  sync.Mutex // never held across a wait
	now time.Time
}

// asks lets reads and writes of notes through, asks about other writes, and
// denies deletions. Every reason has a text that an agent chose.
func asks(reason string) perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Deny
		path := r.Access.Resource.Path
		switch {
		case r.Access.Action == perm.Delete:
		case r.Access.Action == perm.Read, r.Access.Action == perm.List, strings.HasPrefix(path, "notes"), r.Access.Action == perm.Call:
			effect = perm.Allow
		case r.Access.Action == perm.Write:
			effect = perm.Ask
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: reason, At: "rules.rego:7"}}, Revision: "1"}), nil
	})
}

func newPlace(t *testing.T, o console.Options, opts ...agent.Option) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), clk: &testClock{now: time.Now()}}
	var err error
	opts = append([]agent.Option{
		agent.Tools(builtin.Files()...), agent.Policy(asks("the rules say so")), agent.SuspendForApproval(), agent.Root("workspace", p.dir), agent.Log(slog.New(slog.DiscardHandler)),
	}, opts...)
	p.rt, err = agent.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.rt.Close()) })
	p.session, err = p.rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	o.Runtime, o.Host, o.By, o.Now = p.rt, host, "person", p.clock
	if o.CheckApproval == nil {
		o.CheckApproval = func(context.Context, string, []json.RawMessage) error { return nil }
	}
	p.console, err = console.New(o)
	require.NoError(t, err)
	p.cookie = p.enter()
	return p
}

func (p *place) clock() time.Time {
	p.clk.mu.Lock()
	defer p.clk.mu.Unlock()
	return p.clk.now
}

func (p *place) pass(d time.Duration) {
	p.clk.mu.Lock()
	defer p.clk.mu.Unlock()
	p.clk.now = p.clk.now.Add(d)
}

// token returns the secret of a new address.
func (p *place) token() string {
	_, secret, found := strings.Cut(p.console.EntryURL(), "#")
	require.True(p.t, found)
	return secret
}

// enter exchanges a new token for a cookie.
func (p *place) enter() *http.Cookie {
	w := p.do(p.post("/enter", url.Values{"token": {p.token()}}))
	require.Equal(p.t, http.StatusSeeOther, w.Code, w.Body.String())
	cookies := w.Result().Cookies()
	require.Len(p.t, cookies, 1)
	require.True(p.t, cookies[0].HttpOnly)
	require.Equal(p.t, http.SameSiteStrictMode, cookies[0].SameSite)
	return cookies[0]
}

// get returns a request of the browser for a page.
func (p *place) get(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if p.cookie != nil {
		r.AddCookie(&http.Cookie{Name: p.cookie.Name, Value: p.cookie.Value})
	}
	return r
}

// post returns a request of the browser that sends a form of a page.
func (p *place) post(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Host = host
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if p.cookie != nil {
		r.AddCookie(&http.Cookie{Name: p.cookie.Name, Value: p.cookie.Value})
	}
	return r
}

func (p *place) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.console.Handler().ServeHTTP(w, r)
	return w
}

// page returns a page that must be there.
func (p *place) page(path string) string {
	p.t.Helper()
	w := p.do(p.get(path))
	require.Equal(p.t, http.StatusOK, w.Code, w.Body.String())
	return w.Body.String()
}

var formToken = regexp.MustCompile(`name="form" value="([^"]+)"`)

// form returns the token of the forms of a page.
func (p *place) form() string {
	m := formToken.FindStringSubmatch(p.page("/"))
	require.NotNil(p.t, m)
	return m[1]
}

// field returns the value of a hidden field of a page.
func field(t *testing.T, page, name string) string {
	t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, m, page)
	return m[1]
}

// call makes one call in a transaction of its own.
func (p *place) call(name string, args tool.Args) tool.Outcome {
	p.t.Helper()
	out, err := p.session.Call(p.t.Context(), name, args)
	if out.Status == "" {
		require.NoError(p.t, err)
	}
	return out
}

func (p *place) write(path, text string) tool.Outcome {
	return p.call("file_write", tool.Args{"path": path, "content": text})
}

func (p *place) content(path string) string {
	b, err := os.ReadFile(filepath.Join(p.dir, path))
	if os.IsNotExist(err) {
		return "(none)"
	}
	require.NoError(p.t, err)
	return string(b)
}

// location follows the answer to a form.
func (p *place) location(w *httptest.ResponseRecorder) string {
	p.t.Helper()
	require.Equal(p.t, http.StatusSeeOther, w.Code, w.Body.String())
	return w.Header().Get("Location")
}

// own writes a file as the person, outside of remit.
func (p *place) own(path, text string) {
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, path), []byte(text), 0o600))
}
