package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/tool"
)

// attack is a request that must not get in.
type attack struct {
	name string
	do   func(p *place) *http.Request
}

// changed returns a request of the browser with one thing changed.
func changed(change func(r *http.Request)) func(p *place) *http.Request {
	return func(p *place) *http.Request {
		r := p.get("/")
		change(r)
		return r
	}
}

func header(name string, values ...string) func(p *place) *http.Request {
	return changed(func(r *http.Request) { r.Header[name] = values })
}

func from(name string) func(p *place) *http.Request {
	return changed(func(r *http.Request) { r.Host = name })
}

func cookie(text string) func(p *place) *http.Request {
	return changed(func(r *http.Request) { r.Header.Set("Cookie", text) })
}

// reverting returns a request that reverts a transaction, with one thing changed.
func reverting(change func(p *place, r *http.Request)) func(p *place) *http.Request {
	return func(p *place) *http.Request {
		r := p.post("/revert", p.revertForm())
		change(p, r)
		return r
	}
}

// revertForm is the form that reverts the newest write of notes.txt.
func (p *place) revertForm() url.Values {
	p.writes++
	out := p.write("notes.txt", fmt.Sprintf("theirs %d\n", p.writes))
	require.Equal(p.t, tool.StatusDone, out.Status)
	plan := p.page("/revert?id=" + out.Txn)
	return url.Values{"form": {p.form()}, "id": {out.Txn}, "plan": {field(p.t, plan, "plan")}}
}

func body(text, kind string) func(p *place, r *http.Request) {
	return func(_ *place, r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Type", kind)
	}
}

// refill replaces a field of the form.
func refill(name string, values ...string) func(p *place) *http.Request {
	return func(p *place) *http.Request {
		f := p.revertForm()
		f[name] = values
		return p.post("/revert", f)
	}
}

func attacks() []attack {
	drop := func(name string) func(p *place, r *http.Request) {
		return func(_ *place, r *http.Request) { r.Header.Del(name) }
	}
	set := func(name string, values ...string) func(p *place, r *http.Request) {
		return func(_ *place, r *http.Request) { r.Header[name] = values }
	}
	return []attack{
		{"no cookie", cookie("")},
		{"an invented cookie", cookie("remit_console=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")},
		{"an empty cookie", cookie("remit_console=")},
		{"the token as a cookie", func(p *place) *http.Request { return cookie("remit_console=" + p.token())(p) }},
		{"the token of the forms as a cookie", func(p *place) *http.Request { return cookie("remit_console=" + p.form())(p) }},
		{"a cookie that another server set beside", func(p *place) *http.Request {
			return cookie("remit_console=x; remit_console=" + p.cookie.Value)(p)
		}},
		{"a cookie that another server set behind", func(p *place) *http.Request {
			return cookie("remit_console=" + p.cookie.Value + "; remit_console=x")(p)
		}},
		{"the cookie in another case", func(p *place) *http.Request {
			return cookie("remit_console=" + strings.ToUpper(p.cookie.Value))(p)
		}},
		{"the cookie in the address", func(p *place) *http.Request {
			v := p.cookie.Value
			p.cookie = nil
			return p.get("/?remit_console=" + v)
		}},
		{"a token that was used", func(p *place) *http.Request {
			secret := p.token()
			require.Equal(p.t, http.StatusSeeOther, p.do(p.post("/enter", url.Values{"token": {secret}})).Code)
			return p.post("/enter", url.Values{"token": {secret}})
		}},
		{"an old token", func(p *place) *http.Request {
			secret := p.token()
			p.pass(11 * time.Minute)
			return p.post("/enter", url.Values{"token": {secret}})
		}},
		{"no token", func(p *place) *http.Request { return p.post("/enter", url.Values{}) }},
		{"a token in the address", func(p *place) *http.Request { return p.post("/enter?token="+p.token(), url.Values{}) }},
		{"a token by GET", func(p *place) *http.Request {
			p.cookie = nil
			return p.get("/?token=" + p.token())
		}},
		{"a cookie after a day", func(p *place) *http.Request {
			p.pass(24 * time.Hour)
			return p.get("/")
		}},
		{"a cookie after leaving", func(p *place) *http.Request {
			require.Equal(p.t, http.StatusSeeOther, p.do(p.post("/leave", url.Values{"form": {p.form()}})).Code)
			return p.get("/")
		}},
		{"the address as the host", from("127.0.0.1:4711")},
		{"localhost as the host", from("localhost:4711")},
		{"a name that was bound to loopback", from("evil.example:4711")},
		{"another port", from("remit-test.localhost:4712")},
		{"the host without a port", from("remit-test.localhost")},
		{"the host with a dot", from("remit-test.localhost.:4711")},
		{"a host below the host", from("a.remit-test.localhost:4711")},
		{"the host in capitals", from("REMIT-TEST.localhost:4711")},
		{"no host", from("")},
		{"an absolute address of another host", changed(func(r *http.Request) { r.URL.Host, r.Host = "evil.example", "evil.example" })},
		{"another site", header("Sec-Fetch-Site", "cross-site")},
		{"another host of the site", header("Sec-Fetch-Site", "same-site")},
		{"two sites", header("Sec-Fetch-Site", "same-origin", "cross-site")},
		{"another origin", header("Origin", "http://127.0.0.1:3000")},
		{"a hidden origin", header("Origin", "null")},
		{"a frame", header("Sec-Fetch-Dest", "iframe")},
		{"an object", header("Sec-Fetch-Dest", "object")},
		{"a form without its token", refill("form")},
		{"a form with an invented token", refill("form", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")},
		{"a form with two tokens", func(p *place) *http.Request {
			f := p.revertForm()
			f["form"] = []string{f.Get("form"), "x"}
			return p.post("/revert", f)
		}},
		{"a form of another visit", func(p *place) *http.Request {
			f, other := p.revertForm(), *p
			other.cookie = p.enter()
			f.Set("form", other.form())
			return p.post("/revert", f)
		}},
		{"the token of the form in the address", func(p *place) *http.Request {
			f := p.revertForm()
			r := p.post("/revert?"+f.Encode(), url.Values{})
			return r
		}},
		{"a form of another origin", reverting(set("Origin", "http://evil.example"))},
		{"a form of another port", reverting(set("Origin", "http://remit-test.localhost:3000"))},
		{"a form of a hidden origin", reverting(set("Origin", "null"))},
		{"a form without an origin", reverting(drop("Origin"))},
		{"a form with two origins", reverting(set("Origin", "http://"+host, "http://evil.example"))},
		{"a form of https", reverting(set("Origin", "https://"+host))},
		{"a form of another site", reverting(set("Sec-Fetch-Site", "cross-site"))},
		{"a form that was typed", reverting(set("Sec-Fetch-Site", "none"))},
		{"a form as text", reverting(func(p *place, r *http.Request) { body(p.revertForm().Encode(), "text/plain")(p, r) })},
		{"a form as JSON", reverting(func(p *place, r *http.Request) { body(`{"form":"`+p.form()+`"}`, "application/json")(p, r) })},
		{"a form in parts", reverting(func(p *place, r *http.Request) {
			body("--b\r\nContent-Disposition: form-data; name=\"form\"\r\n\r\n"+p.form()+"\r\n--b--\r\n", "multipart/form-data; boundary=b")(p, r)
		})},
		{"a form without a type", reverting(drop("Content-Type"))},
		{"a large form", reverting(func(p *place, r *http.Request) {
			body(p.revertForm().Encode()+"&why="+strings.Repeat("x", 80<<10), "application/x-www-form-urlencoded")(p, r)
		})},
		{"a revert by GET", func(p *place) *http.Request {
			f := p.revertForm()
			p.cookie = &http.Cookie{Name: p.cookie.Name, Value: p.cookie.Value}
			r := p.get("/revert?" + f.Encode())
			r.Method = "PUT"
			return r
		}},
		{"a method in a header", reverting(func(_ *place, r *http.Request) {
			r.Method = http.MethodGet
			r.URL.Path = "/end"
			r.Header.Set("X-HTTP-Method-Override", "POST")
		})},
		{"DELETE", changed(func(r *http.Request) { r.Method = http.MethodDelete })},
		{"OPTIONS", changed(func(r *http.Request) { r.Method = http.MethodOptions })},
		{"TRACE", changed(func(r *http.Request) { r.Method = http.MethodTrace })},
		{"an own method", changed(func(r *http.Request) { r.Method = "REVERT" })},
		{"a path above the assets", changed(func(r *http.Request) { r.URL.Path = "/assets/../pages/now.html" })},
		{"an encoded path above the assets", changed(func(r *http.Request) {
			r.URL.Path, r.URL.RawPath = "/assets/../console.go", "/assets/%2e%2e/console.go"
		})},
		{"the files of the templates", changed(func(r *http.Request) { r.URL.Path = "/pages/now.html" })},
		{"a file of the machine", changed(func(r *http.Request) { r.URL.Path = "//etc/passwd" })},
	}
}

// TestAttacks: no request gets in that is not one of a page of the console in
// the browser that entered, and none changes anything.
func TestAttacks(t *testing.T) {
	in := 0
	all := attacks()
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			p := newPlace(t, console.Options{})
			p.write("notes.txt", "mine\n")
			r := a.do(p)
			was := p.content("notes.txt")
			w := p.do(r)
			if to := w.Header().Get("Location"); w.Code/100 == 3 && r.Method == http.MethodGet { // a path that was made clean
				w = p.do(p.get(to))
			}
			if w.Code < 400 {
				in++
			}
			require.GreaterOrEqual(t, w.Code, 400, w.Body.String())
			require.NotContains(t, w.Body.String(), "file_write", "a page with calls")
			require.Equal(t, was, p.content("notes.txt"), "something was reverted")
			checkHeaders(t, w)
		})
	}
	t.Logf("%d attacks on the console, %d in", len(all), in)
	require.GreaterOrEqual(t, len(all), 40)
}

// TestAttacksFail: the same form without the change of an attack does revert.
func TestAttacksFail(t *testing.T) {
	p := newPlace(t, console.Options{})
	p.write("notes.txt", "mine\n")
	w := p.do(p.post("/revert", p.revertForm()))
	require.Contains(t, p.location(w), "/report?n=")
	require.Equal(t, "mine\n", p.content("notes.txt"))
}

// checkHeaders checks what every response says to the browser.
func checkHeaders(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "require-trusted-types-for 'script'"} {
		require.Contains(t, policy, part)
	}
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "DENY", w.Header().Get("X-Frame-Options"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
}

// TestHeaders: the pages without a session have the same headers, and
// nothing of the journal.
func TestHeaders(t *testing.T) {
	p := newPlace(t, console.Options{Title: "secret-project"})
	p.write("notes.txt", "mine\n")
	for _, path := range []string{"/enter", "/assets/console.css", "/assets/console.js", "/assets/icon.svg", "/", "/timeline", "/nosuch"} {
		w := p.do(p.get(path))
		checkHeaders(t, w)
	}
	p.cookie = nil
	w := p.do(p.get("/enter"))
	require.Equal(t, http.StatusOK, w.Code)
	require.NotContains(t, w.Body.String(), "notes.txt")
	require.NotContains(t, w.Body.String(), "secret-project", "the name of the workspace is for the person who entered")
}

// TestTwoTabs: both tabs of a browser work, and a second browser does not end
// the first one.
func TestTwoTabs(t *testing.T) {
	p := newPlace(t, console.Options{})
	first := p.revertForm()
	second := p.revertForm()
	other := *p
	other.cookie = p.enter()
	other.page("/")
	require.Contains(t, p.location(p.do(p.post("/revert", first))), "changed=1", "the first tab shows an old plan: the file is another one now")
	require.Contains(t, p.location(p.do(p.post("/revert", second))), "/report?n=")
}

// served returns the address of a console that listens.
func served(t *testing.T) (p *place, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p = newPlace(t, console.Options{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.console.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return p, l.Addr().String()
}

// TestRawRequests: requests that no browser sends get nothing either.
func TestRawRequests(t *testing.T) {
	p, addr := served(t)
	for name, text := range map[string]string{
		"two hosts":        "GET / HTTP/1.1\r\nHost: " + host + "\r\nHost: evil.example\r\nCookie: remit_console=" + p.cookie.Value + "\r\n\r\n",
		"an old protocol":  "GET / HTTP/1.0\r\nCookie: remit_console=" + p.cookie.Value + "\r\n\r\n",
		"no protocol":      "GET /\r\n\r\n",
		"a proxy":          "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
		"absolute address": "GET http://evil.example/ HTTP/1.1\r\nHost: " + host + "\r\nCookie: remit_console=" + p.cookie.Value + "\r\n\r\n",
		"large headers":    "GET / HTTP/1.1\r\nHost: " + host + "\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"two lengths":      "POST /enter HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
		"HTTP/2":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, text)
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return // the connection was closed
			}
			defer func() { _ = resp.Body.Close() }()
			require.GreaterOrEqual(t, resp.StatusCode, 400)
		})
	}
}

// TestSlowClients: clients that send nothing, or half a request, do not keep
// others out.
func TestSlowClients(t *testing.T) {
	p, addr := served(t)
	for i := range 40 {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		if i%2 == 0 {
			_, err = io.WriteString(conn, "POST /enter HTTP/1.1\r\nHost: "+host+"\r\nContent-Length: 100\r\n")
			require.NoError(t, err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/", nil)
	require.NoError(t, err)
	r.Host = host
	r.AddCookie(p.cookie)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

// TestEvents: a page learns of each growth of the journal, and of the end of its
// visit.
func TestEvents(t *testing.T) {
	p, addr := served(t)
	page := p.page("/")
	_, head, found := strings.Cut(page, `data-head="`)
	require.True(t, found)
	head, _, _ = strings.Cut(head, `"`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/events?after="+head, nil)
	require.NoError(t, err)
	r.Host = host
	r.AddCookie(p.cookie)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	for range 3 {
		p.write("notes.txt", fmt.Sprint(time.Now().UnixNano()))
		for lines.Scan() && lines.Text() != "event: change" {
			require.NotContains(t, lines.Text(), "data", "no event without its name")
		}
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "data: ")
	}
	require.Equal(t, http.StatusSeeOther, p.do(p.post("/leave", url.Values{"form": {p.form()}})).Code)
	for lines.Scan() {
		require.NotEqual(t, "", "a stream without a visit goes on")
	}
}

// TestStreams: more pages than the console serves are refused, and a closed one
// makes room.
func TestStreams(t *testing.T) {
	p, addr := served(t)
	open := func() (*http.Response, context.CancelFunc) {
		ctx, stop := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/events", nil)
		require.NoError(t, err)
		r.Host = host
		r.AddCookie(p.cookie)
		resp, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
		require.NoError(t, err)
		return resp, stop
	}
	for range 16 {
		resp, stop := open()
		defer stop()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	resp, stop := open()
	defer stop()
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
}

// TestApproverRefused: a person who must not approve here can see the request,
// and the form of another page does not help.
func TestApproverRefused(t *testing.T) {
	p := newPlace(t, console.Options{CheckApproval: func(context.Context, string, []json.RawMessage) error { return fmt.Errorf("only at a terminal") }})
	out := p.write("other.txt", "x")
	require.Equal(t, tool.StatusPending, out.Status)
	page := p.page("/approve?id=" + out.Call)
	require.Contains(t, page, "only at a terminal")
	require.NotContains(t, page, `value="approve"`)
	w := p.do(p.post("/approve", url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "shown": {field(t, page, "shown")}, "answer": {"approve"}, "scope": {"once"}}))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, p.page("/approve?id="+out.Call), "waits for you")
}
