package process_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	handle "github.com/remit-dev/remit/ctxperm/process"
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
	require.Contains(t, o.Text, "[sandbox: the program could not reach "+n.url("telemetry.test", "")+": refused: denied by policy: no packages from there")
	require.Equal(t, []string{ // a denial is decided again for its hints
		"CONNECT " + n.url("registry.test", ""), "POST " + n.plainURL("registry.test", ""),
		"GET " + n.plainURL("telemetry.test", ""), "CONNECT " + n.url("telemetry.test", ""),
	}, slices.Compact(n.policy.seen()))
}
