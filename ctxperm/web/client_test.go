package web_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

const token = "s3cr3t-token-of-a-test"

func storeOf(t *testing.T, value string) *secrets.Store {
	s, err := secrets.New(map[string]secrets.Source{"api": func(context.Context) (string, error) { return value, nil }})
	require.NoError(t, err)
	return s
}

// TestCredentials checks that a credential goes only to its origin, if the call
// may use it. It does not go to another host or port after a redirect, or back.
// The response hides what the service repeats of it.
func TestCredentials(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := func(name string, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, name+" "+r.URL.Path+" "+r.Header.Get("Authorization")+r.Header.Get("X-Mine"))
	}
	var other *httptest.Server
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note("api", r)
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL+"/back", http.StatusFound)
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
			_, _ = io.WriteString(w, "you sent "+r.Header.Get("Authorization"))
		}
	})
	other = serve(t, func(w http.ResponseWriter, r *http.Request) {
		note("other", r)
		http.Redirect(w, r, api.URL+"/end", http.StatusFound)
	})
	store := storeOf(t, token)
	client := newClient(t, web.Options{Secrets: store, Credentials: []web.Credential{{Origin: api.URL, Secret: "api"}}}, addr(api), addr(other))
	mine := map[string]string{"X-Mine": "m"}
	p := &policy{}
	out, resp := send(t, p, web.Request{URL: api.URL + "/here", Headers: mine}, client, store)
	require.Equal(t, tool.StatusDone, out.Status, "%+v", out.Error)
	require.Equal(t, "you sent Bearer (hidden)", string(resp.Body))
	require.NotContains(t, fmt.Sprint(out, resp.Header), token)
	require.Contains(t, p.asked, "use secret://api")
	_, resp = send(t, p, web.Request{URL: api.URL + "/away", Headers: mine}, client, store)
	require.Equal(t, "you sent ", string(resp.Body))
	require.Equal(t, []string{
		"api /here Bearer " + token + "m", "api /end Bearer " + token + "m", "api /away Bearer " + token + "m", "other /back ", "api /end ",
	}, got)

	got = nil
	p.reject = func(r perm.Request) bool { return r.Access.Action == perm.Use }
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		out, _ = send(t, p, web.Request{Method: method, URL: api.URL + "/x"}, client, store)
		require.Equal(t, tool.StatusDenied, out.Status)
	}
	for _, r := range []web.Request{
		{URL: api.URL + "/?q=" + token},
		{Method: http.MethodPost, URL: api.URL + "/", Body: []byte("x" + token)},
		{URL: api.URL + "/", Headers: map[string]string{"X-A": token}},
	} {
		p.reject = nil
		_, _ = send(t, p, web.Request{URL: api.URL + "/"}, client, store) // known from here on
		got = nil
		out, _ = send(t, p, r, client, store)
		require.Equal(t, tool.StatusFailed, out.Status)
		require.Contains(t, out.Error.Why, "the value of a secret")
		require.Empty(t, got, "nothing was sent")
	}

	split := storeOf(t, "value in\ntwo lines")
	client = newClient(t, web.Options{Secrets: split, Credentials: []web.Credential{{Origin: api.URL, Secret: "api", Header: "X-Key"}}}, addr(api))
	out, _ = send(t, &policy{}, web.Request{URL: api.URL + "/"}, client, split)
	require.Contains(t, out.Error.Why, "cannot be sent in a header")
	for _, bad := range []web.Credential{
		{Origin: "http://example.com", Secret: "api"},
		{Origin: "https://example.com/path", Secret: "api"},
		{Origin: "example.com", Secret: "api"},
		{Origin: "https://example.com", Secret: "a/b"},
		{Origin: "https://example.com", Secret: "api", Header: "a b"},
		{Origin: "https://example.com?x=1", Secret: "api"},
	} {
		_, err := web.New(web.Options{Secrets: store, Credentials: []web.Credential{bad}})
		require.Error(t, err, bad.Origin)
	}
	_, err := web.New(web.Options{Credentials: []web.Credential{{Origin: "https://example.com", Secret: "api"}}})
	require.ErrorContains(t, err, "no Secrets")
}

// TestHeadersThatSmuggle checks that they are refused before anything is sent.
func TestHeadersThatSmuggle(t *testing.T) {
	hits := newCanary(t, "127.0.0.1")
	client := newClient(t, web.Options{MaxBody: 1 << 10}, "127.0.0.1")
	for name, value := range map[string]string{
		"Host": "evil", "host": "evil", "Connection": "close", "Transfer-Encoding": "chunked", "transfer_encoding": "chunked", "Content-Length": "1", "TE": "x",
		"Upgrade": "h2c", "Trailer": "x", "Expect": "100-continue", "Authorization": "Basic x", "Cookie": "a=b", "Proxy-Authorization": "x",
		"X-HTTP-Method-Override": "DELETE", "X_HTTP_Method_Override": "DELETE", "x-method-override": "PUT", "X-Original-URL": "/admin", "X-Forwarded-For": "127.0.0.1",
		"X-Forwarded-Host": "a", "Forwarded": "for=1", "Accept-Encoding": "br", "Metadata-Flavor": "Google", "X-aws-ec2-metadata-token": "x", "Metadata": "true",
		"If-Match": "*", "Idempotency-Key": "k", "Range": "bytes=0-", "Via": "x", "Sec-Fetch-Site": "none",
		"X-A": "a\r\nX-B: b", "X-B": "a\nb", "X-C": "a\x00b", "X-D": " a", "X-E": "ü", "X F": "a", "X:G": "a", "": "a", "X-H\r\nY": "a", ":path": "/", "X-I": "\x7f",
	} {
		out, _ := send(t, &policy{}, web.Request{URL: "http://127.0.0.1:" + hits.port + "/", Headers: map[string]string{name: value}}, client)
		require.Equal(t, tool.StatusFailed, out.Status, name)
		require.ErrorIs(t, web.CheckHeader(name, value), ctxperm.ErrInvalid)
	}
	for _, r := range []web.Request{
		{Method: "CONNECT"},
		{Method: "TRACE"},
		{Method: "get"},
		{Method: "POST\r\n"},
		{Method: "OPTIONS"},
		{Method: "GET", Body: []byte("x")},
		{Method: "GET", Key: "k"},
		{Method: "POST", Key: "a\nb"},
		{Method: "POST", Key: strings.Repeat("k", 256)},
		{Method: "HEAD", Compensation: &web.Compensation{}},
		{Method: "POST", Body: make([]byte, 2<<10)},
		{Headers: map[string]string{"X-A": "1", "x-a": "2"}},
		{Headers: map[string]string{"X-Long": strings.Repeat("x", 17<<10)}},
	} {
		r.URL = "http://127.0.0.1:" + hits.port + "/"
		out, _ := send(t, &policy{}, r, client)
		require.NotEqual(t, tool.StatusDone, out.Status, "%+v", r.Method)
		require.NotEqual(t, tool.StatusUnknown, out.Status)
	}
	require.Empty(t, hits.seen())
	out, _ := send(t, &policy{}, web.Request{URL: "http://127.0.0.1:" + hits.port + "/", Headers: map[string]string{"X-Fine": "yes, \tit is"}}, client)
	require.Equal(t, tool.StatusDone, out.Status)
	require.Len(t, hits.seen(), 1, "the control")
}

// TestBounds checks that a response that never comes, never ends, or grows is
// stopped, in time and within the memory bound.
func TestBounds(t *testing.T) {
	release := make(chan struct{})
	zeros := func(n int) []byte {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := io.CopyN(w, zero{}, int64(n))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return packed.Bytes()
	}
	bomb := zeros(4 << 20)
	var arrived atomic.Int64
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		switch r.URL.Path {
		case "/stall":
			<-release
		case "/drip":
			for {
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-release:
					return
				case <-r.Context().Done():
					return
				default:
				}
			}
		case "/flood":
			_, _ = io.CopyN(w, zero{}, 4<<20)
		case "/headers":
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1<<10))
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zeros(1000))
		case "/nested":
			w.Header().Set("Content-Encoding", "gzip, gzip")
			_, _ = w.Write(bomb)
		case "/deflate":
			w.Header().Set("Content-Encoding", "deflate")
			f, _ := flate.NewWriter(w, 1)
			_ = f.Close()
		case "/nogzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("this is not packed at all"))
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
		case "/abort":
			panic(http.ErrAbortHandler)
		}
	})
	t.Cleanup(func() { close(release) })
	patient := newClient(t, web.Options{Timeout: time.Hour, MaxBody: 256 << 10}, addr(server))
	hurried := newClient(t, web.Options{Timeout: 300 * time.Millisecond, MaxBody: 1 << 30}, addr(server))
	for path, says := range map[string]string{
		"/stall": "no answer in time", "/drip": "", "/flood": "too large", "/headers": "", "/bomb": "too large", "/nested": "packed in a way",
		"/deflate": "packed in a way", "/nogzip": "is not", "/short": "broke off", "/abort": "",
	} {
		client := patient
		if path == "/stall" || path == "/drip" { // never ends
			client = hurried
		}
		send := func(r web.Request) (out tool.Outcome) {
			before := arrived.Load()
			for range 100 { // a busy machine can be too slow to send it in time
				if out, _ = send(t, &policy{}, r, client); client == patient || arrived.Load() > before {
					break
				}
			}
			return out
		}
		out := send(web.Request{URL: server.URL + path + "?key=value"})
		require.Equal(t, tool.StatusFailed, out.Status, path)
		require.Contains(t, out.Error.Why, says)
		require.NotContains(t, out.Error.Why, "value", "no query is in a message")
		out = send(web.Request{Method: http.MethodPost, URL: server.URL + path})
		require.Equal(t, tool.StatusUnknown, out.Status, "it may have had its effect: "+path)
	}
	out, resp := send(t, &policy{}, web.Request{URL: server.URL + "/gzip"}, patient)
	require.Equal(t, tool.StatusDone, out.Status)
	require.Len(t, resp.Body, 1000)
	big := newClient(t, web.Options{Timeout: time.Hour, MaxBody: 1 << 30}, addr(server))
	out, _ = send(t, &policy{}, web.Request{URL: server.URL + "/bomb"}, big)
	require.Contains(t, out.Error.Why, "times its size")
	out, _ = send(t, &policy{}, web.Request{Method: http.MethodHead, URL: server.URL + "/gzip"}, patient)
	require.Equal(t, tool.StatusDone, out.Status)
}

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestNeverSent checks that a request without a connection had no effect.
func TestNeverSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	client := newClient(t, web.Options{}, "127.0.0.1")
	for _, target := range []string{"http://" + l.Addr().String() + "/", "https://" + l.Addr().String() + "/"} {
		out, _ := send(t, &policy{}, web.Request{Method: http.MethodPost, URL: target}, client)
		require.Equal(t, tool.StatusFailed, out.Status, "%+v", out.Error)
		require.Equal(t, "all", out.Reverted)
	}
}

// TestTLS checks that only servers with a trusted certificate are accepted.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "safe") }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	_, port, err := net.SplitHostPort(addr(server))
	require.NoError(t, err)
	_, resp := send(t, &policy{}, web.Request{URL: server.URL + "/"}, newClient(t, web.Options{CAs: pool}, "127.0.0.1"))
	require.Equal(t, "safe", string(resp.Body))
	away := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "unsafe") })
	down := httptest.NewTLSServer(http.RedirectHandler(away.URL+"/", http.StatusFound))
	t.Cleanup(down.Close)
	pool.AddCert(down.Certificate())
	out, _ := send(t, &policy{}, web.Request{URL: down.URL + "/"}, newClient(t, web.Options{CAs: pool}, "127.0.0.1"))
	require.Equal(t, tool.StatusFailed, out.Status)
	require.Contains(t, out.Error.Why, "from https to http")
	for name, test := range map[string]struct {
		url string
		o   web.Options
	}{"unknown authority": {server.URL, web.Options{}}, "another name": {"https://localhost:" + port, web.Options{CAs: pool}}, "plain": {"http://" + addr(server), web.Options{CAs: pool}}} {
		out, resp := send(t, &policy{}, web.Request{Method: http.MethodPost, URL: test.url + "/"}, newClient(t, test.o, "127.0.0.1", "::1"))
		if name == "plain" {
			require.Equal(t, 400, resp.Status)
			continue
		}
		require.Equal(t, tool.StatusFailed, out.Status, name)
		require.Contains(t, out.Error.Why, "certificate", name)
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com": "https://example.com/", "https://example.com:443/a/": "https://example.com/a/", "HTTPS://EXAMPLE.com/": "",
		"http://example.com:80/a?b=c&d": "http://example.com/a?b=c&d", "https://Example.COM/A": "https://example.com/A",
		"https://[2606:4700::1111]:8443/x": "https://[2606:4700::1111]:8443/x", "https://example.com/a%20b": "https://example.com/a%20b",
		"https://example.com/%2a": "https://example.com/%2A", "https://example.com/a?b=%41": "https://example.com/a?b=%41",
		"https://xn--bcher-kva.example/": "https://xn--bcher-kva.example/",
		// refused
		"https://user@example.com/": "", "https://example.com/#f": "", "https://example.com/a#f": "", "https://example.com/a/../b": "", "https://example.com//a": "",
		"https://example.com/a?b c": "", "https://example.com/a?b#c": "", "https://example.com/a?%zz": "", "https://example.com/a?\r\n": "", "file:///etc/passwd": "",
		"https://": "", "https:///a": "", "//example.com/": "", "/a": "", "": "", "https://bücher.example/": "", "https://example.com./": "", "https://example.com:0/": "",
		"https://example.com:65536/": "", "https://example.com:/": "", "https://[fe80::1%25lo]/": "", "https://0x7f.1/": "", "https://127.1/": "", "secret://a": "",
		"https://example.com\\@evil/": "", "https://example.com/a\\b": "", "https://example.com/%2e%2e/b": "", "https://example.com/a%2fb": "", "https://example.com/%00": "",
		"https://-a.example/": "", "https://a..example/": "", "https://example.com/" + strings.Repeat("a", 9<<10): "", " https://example.com/": "", "https://example.com/ü": "https://example.com/%C3%BC",
	} {
		u, err := web.ParseURL(text)
		if want == "" {
			require.ErrorIs(t, err, ctxperm.ErrInvalid, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, u.String())
		again, err := web.ParseURL(u.String())
		require.NoError(t, err)
		require.Equal(t, u, again)
	}
	u, err := web.ParseURL("https://example.com/a?token=abc&flag&x=" + strings.Repeat("y", 500))
	require.NoError(t, err)
	require.Equal(t, "https://example.com/a?token=…&flag&x=…", u.Masked())
	u, err = web.ParseURL("https://example.com/" + strings.Repeat("y", 500))
	require.NoError(t, err)
	require.Less(t, len(u.Masked()), 210)
}

func TestWithoutClient(t *testing.T) {
	out, _ := send(t, &policy{}, web.Request{URL: "https://example.com/"})
	require.Contains(t, out.Error.Why, "agent.Driver")
	_, err := web.Do(t.Context(), ctxperm.ToolContext{}, web.Request{URL: "https://example.com/", Method: "GET"})
	require.ErrorIs(t, err, ctxperm.ErrClosed)
}

// Example gives a runtime access to a service on this machine, and reads from
// it.
func Example() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer service.Close()
	near, err := web.ParseNetwork(service.Listener.Addr().String())
	if err != nil {
		panic(err)
	}
	client, err := web.New(web.Options{Allow: []web.Network{near}})
	if err != nil {
		panic(err)
	}
	read, err := tool.CreateWith("read", "Reads a page.", []perm.ResourceAccess{perm.Access(perm.Connect, "http://*:*/**")},
		func(ctx context.Context, tc ctxperm.ToolContext, url string) (string, error) {
			r, err := web.Do(ctx, tc, web.Request{Method: http.MethodGet, URL: url})
			return string(r.Body), err
		}, tool.Pure(), tool.Confined(tool.Handles))
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(read), agent.Driver(client), agent.Policy(&policy{}), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	_, err = s.Update(context.Background(), func(tx *agent.Txn) error {
		out, err := tx.Invoke(context.Background(), "read", service.URL)
		fmt.Println(out.Text)
		return err
	})
	fmt.Println(err)
	// Output:
	// hello
	// <nil>
}
