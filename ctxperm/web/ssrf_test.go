package web_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/tool"
)

// spellings returns ways to write an address of this machine.
func spellings() []string {
	return []string{
		"127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "2130706433", "017700000001", "0x7f000001", "0x7f.0.0.1", "0x7f.1", "0177.0.0.1", "0177.1",
		"00000177.0.0.1", "127.000.000.001", "0127.0.0.1", "0", "0.0.0.0", "0.0", "0x0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
		"[::ffff:7f00:1]", "[::127.0.0.1]", "[::1%25lo]", "[::1%lo]", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "ip6-localhost",
		"１２７.０.０.１", "①②⑦.⓪.⓪.①", "127。0。0。1", "ｌｏｃａｌｈｏｓｔ", "user@127.0.0.1", "user:pass@localhost", "example.com@127.0.0.1",
		"127.0.0.1%00.example.com", "127.0.0.1\\@example.com", "0:80@127.0.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "0x7F.1", "127.0.0.1%20",
	}
}

// TestSpellings sends to each spelling with the Go resolver and with the C
// resolver, which accepts other spellings. The client reaches nothing. A plain
// client reaches many.
func TestSpellings(t *testing.T) {
	if mode := os.Getenv("REMIT_RESOLVER"); mode != "" {
		trySpellings(t)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, mode := range []string{"go", "cgo"} {
		if mode == "cgo" && !withCgo {
			t.Log("built without cgo: there is no C resolver to try")
			continue
		}
		cmd := exec.Command(self, "-test.run=^TestSpellings$", "-test.v")
		cmd.Env = append(os.Environ(), "REMIT_RESOLVER="+mode, "GODEBUG=netdns="+mode)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s: %s", mode, lineWith(string(out), "reached by"))
	}
}

func lineWith(text, part string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(l, part) {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

func trySpellings(t *testing.T) {
	ours, plain := newCanary(t, ""), newCanary(t, "")
	var resolver *net.Resolver
	if os.Getenv("REMIT_RESOLVER") == "go" { // no DNS query leaves this machine
		resolver = nameServer(t, func(int64) []net.IP { return nil })
	}
	client := newClient(t, web.Options{Resolver: resolver})
	naive := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Resolver: resolver}).DialContext}}
	reached := 0
	for _, host := range spellings() {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			out, _ := send(t, &policy{}, web.Request{Method: method, URL: "http://" + host + ":" + ours.port + "/x"}, client)
			require.NotEqual(t, tool.StatusDone, out.Status, host)
			require.NotEqual(t, tool.StatusUnknown, out.Status, "%s: %+v", host, out.Error)
		}
		before := len(plain.seen())
		if strings.Contains(host, "64:ff9b") || strings.Contains(host, "2002:") || strings.Contains(host, "::127") {
			continue // a plain client would look for them outside this machine
		}
		if resp, err := naive.Get("http://" + host + ":" + plain.port + "/x"); err == nil {
			_ = resp.Body.Close()
		}
		if len(plain.seen()) > before {
			reached++
		}
	}
	require.Empty(t, ours.seen())
	require.GreaterOrEqual(t, reached, 8, "the test would see it")
	t.Logf("%d of %d spellings reached by a plain client, 0 by ours", reached, len(spellings()))
}

// specials returns addresses that are not those of a host of the public
// internet.
func specials() []string {
	return strings.Fields(`0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 169.254.0.1
		169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.175.48.1
		198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 100.100.100.200
		:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 100:0:0:1::1
		2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 2620:4f:8000::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254
		fd20:ce::254 fe80::1 fec0::1 ff02::1 ff0e::1`)
}

func TestSpecialAddresses(t *testing.T) {
	dial := func(a, port string, allow ...string) error {
		var list []web.Network
		for _, text := range allow {
			n, err := web.ParseNetwork(text)
			require.NoError(t, err)
			list = append(list, n)
		}
		return web.CheckAddress(net.JoinHostPort(a, port), list)
	}
	for _, a := range specials() {
		require.Error(t, dial(a, "80"), a)
	}
	for _, a := range strings.Fields("8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2a00::1 2400:cb00::1 ::ffff:8.8.8.8") {
		require.NoError(t, dial(a, "443"), a)
	}
	for _, c := range []struct {
		a, port, allow string
		ok             bool
	}{
		{"10.1.2.3", "80", "10.0.0.0/8", true},
		{"10.1.2.3", "80", "10.1.2.3", true},
		{"10.1.2.3", "80", "10.1.2.3:80", true},
		{"10.1.2.3", "81", "10.1.2.3:80", false},
		{"11.1.2.3", "81", "10.0.0.0/8", true},
		{"192.168.1.1", "80", "10.0.0.0/8", false},
		{"169.254.169.254", "80", "169.254.0.0/16", false}, // its network does not include it
		{"169.254.169.254", "80", "169.254.169.254", true},
		{"168.63.129.16", "80", "0.0.0.0/0", false},
		{"fd00:ec2::254", "80", "fc00::/7", false},
		{"fd12::1", "80", "fc00::/7", true},
		{"::ffff:10.1.2.3", "80", "10.0.0.0/8", true},
		{"64:ff9b::808:808", "80", "64:ff9b::/96", true}, // a translator to the public internet
		{"64:ff9b::7f00:1", "80", "64:ff9b::/96", false}, // and to this machine
		{"64:ff9b::a9fe:a9fe", "80", "64:ff9b::/96", false},
		{"2002:7f00:1::", "80", "2002::/16", false},
		{"2001:0:0:0:0:0:80ff:fffe", "80", "2001::/32", false}, // Teredo of 127.0.0.1
		{"::1", "8080", "[::1]:8080", true},
	} {
		require.Equal(t, c.ok, dial(c.a, c.port, c.allow) == nil, "%v", c)
	}
	for _, bad := range []string{"", "localhost:80", "10.0.0.1", "[fe80::1%lo]:80", "nonsense"} {
		require.Error(t, web.CheckAddress(bad, nil), bad)
	}
	for _, bad := range []string{"", "10.0.0.1/8", "localhost", "10.0.0.1:0", "::ffff:10.0.0.1", "fe80::1%lo", "10.0.0.0/33", "[::1]"} {
		_, err := web.ParseNetwork(bad)
		require.Error(t, err, bad)
	}
	for _, good := range []string{"10.0.0.0/8", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "fc00::/7"} {
		n, err := web.ParseNetwork(good)
		require.NoError(t, err)
		require.Equal(t, good, n.String())
	}
	require.Equal(t, "none", web.Network{}.String())
	_, err := web.New(web.Options{Allow: []web.Network{{}}})
	require.Error(t, err)
}

// TestRedirectsAreAccesses checks that each redirect is authorized and checked
// at the dial. It never leads where a first request could not go.
func TestRedirectsAreAccesses(t *testing.T) {
	c := newCanary(t, "")
	var to atomic.Pointer[string]
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			_, _ = io.WriteString(w, "the end")
			return
		}
		w.Header().Set("Location", *to.Load())
		w.WriteHeader([]int{301, 302, 303, 307, 308}[len(r.URL.Path)%5])
	})
	client := newClient(t, web.Options{}, addr(first))
	var targets []string
	for _, host := range spellings() {
		targets = append(targets, "http://"+host+":"+c.port+"/", "//"+host+":"+c.port+"/")
	}
	targets = append(targets, "file:///etc/passwd", "gopher://127.0.0.1:"+c.port+"/", "ftp://127.0.0.1/", "javascript:alert(1)", "http:/"+"/", "::", "http://[", "/\x00", "/loop")
	for _, target := range targets {
		to.Store(&target)
		for _, path := range []string{"/", "/ab", "/abc", "/abcd", "/abcde"} {
			out, _ := send(t, &policy{}, web.Request{URL: first.URL + path}, client)
			require.NotEqual(t, tool.StatusDone, out.Status, target)
		}
	}
	require.Empty(t, c.seen())

	end := "/end?q=1#frag"
	to.Store(&end)
	p := &policy{}
	out, got := send(t, p, web.Request{URL: first.URL + "/start"}, client)
	require.Equal(t, tool.StatusDone, out.Status)
	require.Equal(t, first.URL+"/end?q=1", got.URL.String())
	require.Equal(t, []string{"connect GET " + first.URL + "/start", "connect GET " + first.URL + "/end"}, p.asked[len(p.asked)-2:])
	p.reject = onlyPath("end")
	out, _ = send(t, p, web.Request{URL: first.URL + "/start"}, client)
	require.Equal(t, tool.StatusDenied, out.Status)
	out, got = send(t, &policy{}, web.Request{Method: http.MethodPost, URL: first.URL + "/start"}, client)
	require.Equal(t, tool.StatusDone, out.Status)
	require.Equal(t, 302, got.Status, "what has an effect is not sent on")
	out, got = send(t, &policy{}, web.Request{URL: first.URL + "/start"}, newClient(t, web.Options{MaxRedirects: -1}, addr(first)))
	require.Equal(t, tool.StatusDone, out.Status)
	require.Equal(t, 302, got.Status)
}

// TestRebinding checks a name that resolves to an allowed address at first and
// to another one at the dial, or to both at once. It reaches no other address.
func TestRebinding(t *testing.T) {
	c := newCanary(t, "127.0.0.1")
	l, err := net.Listen("tcp", "127.0.0.2:"+c.port)
	if err != nil {
		t.Skip("127.0.0.2 cannot be listened on here: " + err.Error())
	}
	good := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "good") })}
	go func() { _ = good.Serve(l) }()
	t.Cleanup(func() { _ = good.Close() })
	allowed, other := net.IPv4(127, 0, 0, 2).To4(), net.IPv4(127, 0, 0, 1).To4()
	for name, answers := range map[string]func(n int64) []net.IP{
		"alternating":  func(n int64) []net.IP { return [][]net.IP{{allowed}, {other}}[n%2] },
		"later":        func(n int64) []net.IP { return [][]net.IP{{allowed}, {other}}[min(n, 1)] },
		"both":         func(int64) []net.IP { return []net.IP{other, allowed} },
		"both, turned": func(int64) []net.IP { return []net.IP{allowed, other} },
	} {
		t.Run(name, func(t *testing.T) {
			resolver := nameServer(t, answers)
			client := newClient(t, web.Options{Resolver: resolver}, "127.0.0.2:"+c.port)
			before, done := len(c.seen()), 0
			for range 10 {
				out, _ := send(t, &policy{}, web.Request{URL: "http://rebind.test:" + c.port + "/"}, client)
				if out.Status == tool.StatusDone {
					done++
				} else {
					require.Equal(t, tool.StatusDenied, out.Status, "%+v", out.Error)
				}
			}
			require.Len(t, c.seen(), before)
			require.Positive(t, done, "the allowed address is reached")
			plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Resolver: resolver}).DialContext}}
			for range 3 {
				if resp, err := plain.Get("http://rebind.test:" + c.port + "/"); err == nil {
					_ = resp.Body.Close()
				}
			}
			if name != "both, turned" {
				require.Greater(t, len(c.seen()), before, "the test would see it")
			}
		})
	}
}

// nameServer is a name server on this machine that calls answers for each
// query.
func nameServer(t *testing.T, answers func(n int64) []net.IP) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	var n atomic.Int64
	go func() {
		buf := make([]byte, 1500)
		for {
			size, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12
			for end < size && buf[end] != 0 {
				end += int(buf[end]) + 1
			}
			question := buf[12 : end+5]
			var ips []net.IP
			if binary.BigEndian.Uint16(question[len(question)-4:]) == 1 {
				ips = answers(n.Add(1) - 1)
			}
			reply := append([]byte{buf[0], buf[1], 0x81, 0x80, 0, 1, 0, byte(len(ips)), 0, 0, 0, 0}, question...)
			for _, ip := range ips {
				reply = append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip...)
			}
			_, _ = conn.WriteTo(reply, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// TestNoProxyFromTheEnvironment checks that no proxy receives unchecked
// addresses.
func TestNoProxyFromTheEnvironment(t *testing.T) {
	c := newCanary(t, "")
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+c.port)
	}
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") })
	_, got := send(t, &policy{}, web.Request{URL: target.URL + "/"}, newClient(t, web.Options{}, addr(target)))
	require.Equal(t, "direct", string(got.Body))
	out, _ := send(t, &policy{}, web.Request{URL: "http://169.254.169.254/latest/meta-data"}, newClient(t, web.Options{}, "127.0.0.0/8"))
	require.Equal(t, tool.StatusDenied, out.Status)
	require.Contains(t, fmt.Sprint(out.Error), "no setting allows its network")
	require.Empty(t, c.seen())
}
