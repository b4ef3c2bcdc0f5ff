package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// hostsOf returns the hosts of a result.
func hostsOf(t *testing.T, o tool.Outcome) map[string]handle.Host {
	t.Helper()
	var out struct{ Hosts []handle.Host }
	require.NoError(t, json.Unmarshal(o.Output, &out), string(o.Output))
	all := map[string]handle.Host{}
	for _, h := range out.Hosts {
		all[h.Origin] = h
	}
	return all
}

// TestEgress checks that a program reaches allowed hosts through its proxy, and
// only those, and that the result names both.
func TestEgress(t *testing.T) {
	n := newNetwork(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.URL, body)
	}))
	n.policy.deny = []string{"telemetry.test"}
	_, o := n.shell(t, "curl -sS --cacert ca.pem "+n.url("registry.test", "/a")+" > got; curl -sS -d x=1 "+n.plainURL("registry.test", "/b?c")+"; cat got; "+
		"curl -sS "+n.plainURL("telemetry.test", "/")+"; curl -sS "+n.url("telemetry.test", "/"))
	require.Contains(t, o.Text, "GET registry.test:"+n.port+" /a ")
	require.Contains(t, o.Text, "/b?c x=1")
	require.Contains(t, o.Text, "no packages from there")
	all := hostsOf(t, o)
	require.Len(t, all, 4)
	good := all[n.url("registry.test", "")]
	require.Equal(t, 1, good.Connections, all)
	require.Positive(t, good.Sent)
	require.Positive(t, good.Received)
	require.Empty(t, good.Refused)
	bad := all[n.url("telemetry.test", "")]
	require.Zero(t, bad.Connections+int(bad.Sent+bad.Received))
	require.Contains(t, bad.Refused, "no packages from there")
	require.Contains(t, o.Text, "[network: "+n.url("registry.test", "")+":")
	require.Contains(t, o.Text, "[sandbox: denied connect "+n.url("telemetry.test", "")+": denied by policy: no packages from there")
	require.Equal(t, []string{ // a denial is decided again for its hints
		"CONNECT " + n.url("registry.test", ""), "POST " + n.plainURL("registry.test", ""),
		"GET " + n.plainURL("telemetry.test", ""), "CONNECT " + n.url("telemetry.test", ""),
	}, slices.Compact(n.policy.seen()))
}

// send is a script of bash that sends a request to the proxy as it is, and
// prints the response, of a tunnel that is open only its first line.
func send(request string) string {
	return `exec 3<>/dev/tcp/127.0.0.1/3128; printf '` + strings.NewReplacer("\r", `\r`, "\n", `\n`, "'", `'\''`, "%", "%%").Replace(request) + `' >&3; read -r line <&3; echo "$line"; case "$line" in *established*) ;; *) cat <&3 ;; esac; exec 3>&-; `
}

// tunnel is a request for a tunnel, whose Host header names an allowed host.
func (n *network) tunnel(target string) string {
	return send("CONNECT " + target + " HTTP/1.1\r\nHost: registry.test:" + n.port + "\r\nConnection: close\r\n\r\n")
}

// hits returns a handler that counts its requests.
func hits(count *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		_, _ = fmt.Fprintf(w, "served %s to %s", r.URL, r.Host)
	})
}

// TestEgressTargets checks that the proxy reaches no address, no other
// spelling of one, and no name that leads to a special address, whatever the
// policy allows.
func TestEgressTargets(t *testing.T) {
	var count atomic.Int64
	n := newNetwork(t, hits(&count))
	_, plain, _ := strings.Cut(strings.TrimPrefix(n.plainURL("h", ""), "http://"), ":")
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1",
		"0", "１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1", "127.0.0.1.", "registry.test.", "user@registry.test", "registry.test@127.0.0.1", "registry.test%00", "[fe80::1%25lo]",
		"metadata.test", "", "registry..test", "*.test", "-registry.test",
	} {
		_, o := n.shell(t, n.tunnel(host+":"+n.port)+send("GET http://"+host+":"+plain+"/ HTTP/1.1\r\nHost: registry.test\r\nConnection: close\r\n\r\n"))
		require.NotContains(t, o.Text, "HTTP/1.1 200", host)
		require.NotContains(t, o.Text, "served", host)
		for origin, h := range hostsOf(t, o) {
			require.Zero(t, h.Connections, origin)
			require.NotEmpty(t, h.Refused, origin)
		}
	}
	for _, target := range []string{"registry.test", "registry.test:", "registry.test:0", "registry.test:99999", "registry.test:x", "registry.test:" + n.port + ":" + n.port, "http://registry.test:" + n.port, "//registry.test:" + n.port, "registry.test:" + n.port + "/", "registry.test:" + n.port + "?", "registry.test:" + n.port + "#a"} {
		_, o := n.shell(t, n.tunnel(target))
		require.NotContains(t, o.Text, "HTTP/1.1 200", target)
	}
	require.Zero(t, count.Load())
	for _, asked := range n.policy.seen() {
		require.Contains(t, asked, "://metadata.test:", "no other target is a host")
	}
	_, o := n.shell(t, n.tunnel("metadata.test:80"))
	require.Contains(t, o.Text, "169.254.169.254:80 is not on the public internet")
	_, o = n.shell(t, n.tunnel("registry.test:"+n.port))
	require.Contains(t, o.Text, "HTTP/1.1 200", "the test would see it")
}

// TestEgressHostHeader checks that a Host header decides nothing: the host of
// the URL is decided, and receives its own name.
func TestEgressHostHeader(t *testing.T) {
	var count atomic.Int64
	n := newNetwork(t, hits(&count))
	n.policy.deny = []string{"telemetry.test"}
	_, o := n.shell(t, send("GET "+n.plainURL("registry.test", "/a")+" HTTP/1.1\r\nHost: telemetry.test\r\nConnection: close\r\n\r\n"))
	require.Contains(t, o.Text, "served /a to "+strings.TrimPrefix(n.plainURL("registry.test", ""), "http://"))
	_, o = n.shell(t, send("GET "+n.plainURL("telemetry.test", "/a")+" HTTP/1.1\r\nHost: "+strings.TrimPrefix(n.plainURL("registry.test", ""), "http://")+"\r\nConnection: close\r\n\r\n")+n.tunnel("telemetry.test:"+n.port))
	require.NotContains(t, o.Text, "served")
	require.Equal(t, 2, strings.Count(o.Text, "HTTP/1.1 403"), o.Text)
	_, o = n.shell(t, send("GET "+n.plainURL("registry.test", "/one")+" HTTP/1.1\r\nHost: a\r\n\r\nGET "+n.plainURL("telemetry.test", "/two")+" HTTP/1.1\r\nHost: registry.test\r\nConnection: close\r\n\r\n"))
	require.Contains(t, o.Text, "served /one")
	require.Contains(t, o.Text, "no packages from there")
	require.Equal(t, int64(2), count.Load())
}

// TestEgressRebinding checks that a name that changes its address after the
// decision reaches no other address.
func TestEgressRebinding(t *testing.T) {
	var count atomic.Int64
	n := newNetwork(t, hits(&count))
	_, o := n.shell(t, "for i in 1 2 3 4 5 6; do "+n.tunnel("rebind.test:"+n.port)+"done")
	require.Contains(t, o.Text, "HTTP/1.1 200")
	require.Contains(t, o.Text, "10.0.0.1:"+n.port+" is not on the public internet")
}

// TestNoEgress checks that a program whose session may connect nowhere runs as
// without a proxy.
func TestNoEgress(t *testing.T) {
	all := []perm.ResourceAccess{perm.Access(perm.Connect, "https://*:*/**"), perm.Access(perm.Connect, "http://*:*/**")}
	n := newNetwork(t, http.NotFoundHandler(), agent.Except(all...))
	_, o := n.shell(t, `env | grep -ic proxy; curl -sS -m 10 https://registry.test; (exec 3<>/dev/tcp/127.0.0.1/3128) && echo connected`)
	require.True(t, strings.HasPrefix(o.Text, "0\n"), o.Text)
	require.NotContains(t, o.Text, "connected")
	require.Contains(t, o.Text, "no name can be looked up")
	require.Empty(t, hostsOf(t, o))
	require.Empty(t, n.policy.seen())
}

// TestEgressOnly checks that a program with a proxy reaches nothing beside it,
// and that its own loopback needs no proxy.
func TestEgressOnly(t *testing.T) {
	installed(t, "python3")
	var count atomic.Int64
	n := newNetwork(t, hits(&count))
	_, o := n.shell(t, server+"curl -sS http://127.0.0.1:8000/page http://localhost:8000/page; "+
		"curl -sS -m 10 --noproxy '*' http://127.0.0.1:"+n.port+"; curl -sS -m 10 --noproxy '*' "+n.url("registry.test", "/")+"; ls -l /proc/self/fd | grep socket; exit 1")
	require.True(t, strings.HasPrefix(o.Text, "served\nserved\n"), o.Text)
	require.NotContains(t, o.Text, "socket:")
	require.Zero(t, count.Load())
	require.Contains(t, o.Text, nothing)
	require.Contains(t, o.Text, noNames)
	require.Empty(t, n.policy.seen())
}

// TestEgressOutlived checks that no process reaches a host after its call.
func TestEgressOutlived(t *testing.T) {
	var count atomic.Int64
	n := newNetwork(t, hits(&count))
	_, o := n.shell(t, "setsid bash -c 'while :; do curl -s -o /dev/null "+n.plainURL("registry.test", "/")+"; done' >/dev/null 2>&1 & until curl -s -o /dev/null "+n.plainURL("registry.test", "/")+"; do :; done")
	after := count.Load()
	require.Positive(t, after)
	require.Contains(t, string(o.Output), `"survivors":`)
	n.shell(t, "true")
	require.Equal(t, after, count.Load())
}

// TestEgressOfAFailedCall checks that a call without a result still has its
// hosts on record, and that its error names them.
func TestEgressOfAFailedCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := newNetwork(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	tx, err := n.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(ctx, "shell_run", tool.Args{"script": "echo x > made; curl -sS " + n.plainURL("registry.test", "/") + "; sleep 1000", "timeout_s": 3600})
	require.Error(t, err)
	require.Equal(t, tool.StatusCancelled, o.Status)
	require.Contains(t, o.Error.Why, "the program reached "+n.plainURL("registry.test", "")+", and what it sent there stays sent")
	rep, err := n.s.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{n.plainURL("registry.test", "")}, rep.Contacted)
	require.NoFileExists(t, filepath.Join(n.dir, "made"))
}

// TestEgressAsks checks that a host that needs an approval is refused without
// an approver, and that the rest of the program continues.
func TestEgressAsks(t *testing.T) {
	var count atomic.Int64
	n := newNetwork(t, hits(&count))
	n.policy.ask = []string{"sums.test"}
	_, o := n.shell(t, "curl -sS "+n.plainURL("sums.test", "/")+"; curl -sS "+n.plainURL("registry.test", "/")+"; echo kept > kept")
	require.Contains(t, o.Text, "there is no approver: an unknown host")
	require.Contains(t, o.Text, "served")
	require.FileExists(t, filepath.Join(n.dir, "kept"))
	require.Equal(t, int64(1), count.Load())
}
