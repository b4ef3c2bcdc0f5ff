package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/egress"
)

// upstream allows hosts of a map, and connects to the listed addresses.
type upstream struct {
	mu    sync.Mutex
	hosts map[string]string
	asked []string
}

func (u *upstream) Origin(text string) (string, error) {
	if strings.ContainsAny(text, "@ ") || strings.Count(text, "/") != 2 {
		return "", errors.New("not a host")
	}
	return strings.ToLower(text), nil
}

func (u *upstream) Dial(ctx context.Context, method, origin string) (net.Conn, error) {
	u.mu.Lock()
	u.asked = append(u.asked, method+" "+origin)
	to, ok := u.hosts[origin]
	u.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("%w: by the test", egress.ErrRefused)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

func (u *upstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string{}, u.asked...)
}

// setup is a proxy with one host, good.test, that records its requests.
type setup struct {
	*upstream

	proxy *egress.Proxy
	at    string
	mu    sync.Mutex
	got   []string
}

func newSetup(t *testing.T, limits egress.Limits) *setup {
	t.Helper()
	s := &setup{}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got = append(s.got, fmt.Sprintf("%s %s %s %q %v", r.Method, r.Host, r.URL, body, err))
		s.mu.Unlock()
		w.Header().Set("X-Seen", strings.Join(r.Header["Proxy-Authorization"], ",")+strings.Join(r.Header["X-Hop"], ","))
		_, _ = io.WriteString(w, "hello")
	}))
	t.Cleanup(host.Close)
	at := host.Listener.Addr().String()
	s.upstream = &upstream{hosts: map[string]string{"http://good.test": at, "https://good.test:443": at}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.at = l.Addr().String()
	s.proxy = egress.Serve(t.Context(), l, s.upstream, limits)
	t.Cleanup(func() { s.proxy.Close() })
	return s
}

func (s *setup) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.got...)
}

// raw sends bytes and returns all that comes back until the end.
func (s *setup) raw(t *testing.T, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	tcp, ok := c.(*net.TCPConn)
	require.True(t, ok)
	_ = tcp.CloseWrite()
	back, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(back)
}

const request = " HTTP/1.1\r\nHost: other.test\r\n"

// TestForms checks each form of a request: which host it reaches, and the
// status.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct{ send, status, reached, asked string }{
		"plain":                           {"GET http://good.test/a?b" + request + "\r\n", "200", `GET good.test /a?b "" <nil>`, "GET http://good.test"},
		"upper case":                      {"GET HTTP://GOOD.test/" + request + "\r\n", "200", `GET good.test / "" <nil>`, "GET http://good.test"},
		"tunnel":                          {"CONNECT good.test:443" + request + "\r\nGET /in HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n", "200", `GET inner /in "" <nil>`, "CONNECT https://good.test:443"},
		"refused":                         {"GET http://bad.test/" + request + "\r\n", "403", "", "GET http://bad.test"},
		"refused tunnel":                  {"CONNECT bad.test:443" + request + "\r\n", "403", "", "CONNECT https://bad.test:443"},
		"the Host header is not a target": {"GET / HTTP/1.1\r\nHost: good.test\r\n\r\n", "400", "", ""},
		"https without a tunnel":          {"GET https://good.test/" + request + "\r\n", "400", "", ""},
		"another scheme":                  {"GET ftp://good.test/" + request + "\r\n", "400", "", ""},
		"a user":                          {"GET http://u@good.test/" + request + "\r\n", "400", "", ""},
		"a tunnel to a URL":               {"CONNECT http://good.test/" + request + "\r\n", "403", "", ""},
		"a tunnel with a path":            {"CONNECT good.test:443/x" + request + "\r\n", "403", "", ""},
		"a tunnel with a user":            {"CONNECT u@good.test:443" + request + "\r\n", "403", "", ""},
		"a tunnel to a path":              {"CONNECT /good.test:443" + request + "\r\n", "403", "", ""},
		"no target":                       {"OPTIONS *" + request + "\r\n", "400", "", ""},
		"no HTTP":                         {"\x05\x01\x00", "400", "", ""},
		"HTTP/2":                          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400", "", ""},
		"two lengths":                     {"POST http://good.test/" + request + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400", "", ""},
		"a space before the colon":        {"POST http://good.test/" + request + "Content-Length : 2\r\n\r\nab", "400", "", ""},
		"an unknown coding":               {"POST http://good.test/" + request + "Transfer-Encoding: xchunked\r\n\r\nab", "501", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, egress.Limits{})
			back := s.raw(t, c.send)
			require.True(t, strings.HasPrefix(back, "HTTP/1.1 "+c.status) || c.status == "400" && name == "HTTP/2" && !strings.Contains(back, "200"), back)
			reached, asked := []string{}, []string{}
			if c.reached != "" {
				reached = []string{c.reached}
			}
			if c.asked != "" {
				asked = []string{c.asked}
			}
			require.Equal(t, reached, s.seen())
			require.Equal(t, asked, s.requests())
		})
	}
}

// TestSmuggling checks that no byte after a request reaches its host as another
// one, and that each request on a connection is decided by itself.
func TestSmuggling(t *testing.T) {
	inner := "GET http://bad.test/secret HTTP/1.1\r\nHost: good.test\r\n\r\n"
	for name, send := range map[string]string{
		"pipelined":         "GET http://good.test/" + request + "\r\n" + inner,
		"length and coding": "POST http://good.test/" + request + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"after a length":    "POST http://good.test/" + request + "Content-Length: 2\r\n\r\nab" + inner,
		"body of a GET":     "GET http://good.test/" + request + "Content-Length: 2\r\n\r\nab" + inner,
		"as a header":       "GET http://good.test/" + request + "X: a\r\n\r\n" + inner,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, egress.Limits{})
			back := s.raw(t, send)
			require.Contains(t, back, "HTTP/1.1 200")
			require.Contains(t, back, "HTTP/1.1 403")
			require.Len(t, s.seen(), 1)
			require.NotContains(t, s.seen()[0], "secret")
			require.Equal(t, "GET http://bad.test", s.requests()[1])
		})
	}
	s := newSetup(t, egress.Limits{})
	back := s.raw(t, "GET http://good.test/"+request+"Connection: close, X-Hop\r\nX-Hop: 1\r\nProxy-Authorization: secret\r\n\r\n")
	require.Contains(t, back, "X-Seen: \r\n", "headers of the connection end at the proxy")
}

// TestHugeHeader checks that a header over the limit reaches no host.
func TestHugeHeader(t *testing.T) {
	s := newSetup(t, egress.Limits{Header: 1024})
	back := s.raw(t, "GET http://good.test/"+request+"X: "+strings.Repeat("a", 64<<10)+"\r\n\r\n")
	require.Contains(t, back, "HTTP/1.1 431")
	require.Empty(t, s.requests())
}

// TestSlowHeader checks that a connection without a complete header ends.
func TestSlowHeader(t *testing.T) {
	s := newSetup(t, egress.Limits{HeaderTime: 20 * time.Millisecond})
	c, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	// On a busy machine the time can be over before the proxy reads this: then the
	// connection is reset.
	_, _ = io.WriteString(c, "GET http://good.test/ HTTP/1.1\r\n")
	_, _ = io.ReadAll(c) // returns only when the proxy has ended the connection
	require.Empty(t, s.requests())
}

// TestIdleTunnel checks that a tunnel without traffic ends, and that one with
// traffic in one direction does not.
func TestIdleTunnel(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	s := newSetup(t, egress.Limits{Idle: 50 * time.Millisecond})
	s.hosts["https://slow.test:1"] = l.Addr().String()
	c, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "CONNECT slow.test:1 HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	there, err := l.Accept()
	require.NoError(t, err)
	defer func() { _ = there.Close() }()
	back, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Contains(t, string(back), "200")
	_, err = there.Read(make([]byte, 1))
	require.Error(t, err)
}

// TestConnections checks that a proxy serves a limited number of connections at
// once, and the others later.
func TestConnections(t *testing.T) {
	s := newSetup(t, egress.Limits{Connections: 1})
	first, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	_, err = io.WriteString(first, "GET http://good.test/first"+request+"\r\n")
	require.NoError(t, err)
	_, err = http.ReadResponse(bufio.NewReader(first), nil)
	require.NoError(t, err)
	second, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer func() { _ = second.Close() }()
	_, err = io.WriteString(second, "GET http://good.test/second"+request+"\r\n")
	require.NoError(t, err)
	require.Len(t, s.seen(), 1, "the first one still has the place")
	require.NoError(t, first.Close())
	_, err = http.ReadResponse(bufio.NewReader(second), nil)
	require.NoError(t, err)
	require.Len(t, s.seen(), 2)
}

// TestHosts checks the numbers of hosts, and their limit.
func TestHosts(t *testing.T) {
	s := newSetup(t, egress.Limits{Hosts: 2})
	s.raw(t, "GET http://good.test/"+request+"\r\n")
	s.raw(t, "GET http://bad.test/"+request+"\r\n")
	require.Contains(t, s.raw(t, "GET http://third.test/"+request+"\r\n"), "which is the limit")
	all := s.proxy.Close()
	require.Len(t, all, 2)
	require.Equal(t, "http://bad.test", all[0].Origin)
	require.Equal(t, "refused: by the test", all[0].Refused)
	require.False(t, all[0].Reached())
	require.Equal(t, 1, all[1].Connections)
	require.Positive(t, all[1].Sent)
	require.Positive(t, all[1].Received)
}

// TestClose checks that no tunnel outlives its proxy.
func TestClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	s := newSetup(t, egress.Limits{})
	s.hosts["https://open.test:1"] = l.Addr().String()
	c, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "CONNECT open.test:1 HTTP/1.1\r\n\r\nhello")
	require.NoError(t, err)
	there, err := l.Accept()
	require.NoError(t, err)
	defer func() { _ = there.Close() }()
	_, err = io.ReadFull(there, make([]byte, 5))
	require.NoError(t, err)
	all := s.proxy.Close()
	require.Equal(t, int64(5), all[0].Sent)
	_, err = there.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", s.at)
	require.Error(t, err)
}
