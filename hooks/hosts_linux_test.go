package hooks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

const deniesAHost = `package remit

deny contains "no packages from there" if {
	input.access.action == "connect"
	endswith(input.access.resource.host, "denied.test")
}

hint contains "use the mirror" if {
	input.access.action == "connect"
	endswith(input.access.resource.host, "denied.test")
}
`

// TestDeniedHost: a command whose host the policy denies shows why, although
// its program shows only a status, or nothing.
func TestDeniedHost(t *testing.T) {
	const reason = "denied by policy: no packages from there"
	d := newProject(t, true, deniesAHost)
	c := d.coder("claude-code", "s")
	c.says("fetch")
	one := c.runs("curl -sS https://denied.test/a; curl -s https://denied.test/b; true")
	require.Zero(t, one.code)
	told := strings.Split(one.out, "\n")
	require.Equal(t, "curl: (56) CONNECT tunnel failed, response 403", told[0])
	require.Len(t, told, 2, one.out)
	require.Contains(t, told[1], "denied connect https://denied.test: "+reason)
	require.Contains(t, told[1], "; use the mirror")
	require.Empty(t, one.after)

	_, call, err := revert.LoadCall(t.Context(), d.journal, d.lastCall())
	require.NoError(t, err)
	denied := call.DeniedHosts()
	require.Len(t, denied, 1)
	require.Equal(t, "https://denied.test", denied[0].Origin)
	require.Contains(t, denied[0].Why, reason)
	require.Empty(t, call.ContactedHosts())
	require.Equal(t, effect.DeniedHost{Origin: "https://denied.test", Why: denied[0].Why}, denied[0])

	one = c.runs("curl -sSi http://denied.test/a")
	require.Contains(t, one.out, "HTTP/1.1 403 Forbidden")
	require.Contains(t, one.out, `Proxy-Status: remit; error=http_request_denied; details="connect http://denied.test: `+reason)
	require.Contains(t, one.out, "\nremit: denied connect http://denied.test: "+reason)
	require.NotContains(t, one.out, "remit approve")

	one = c.runs("for i in 1 2 3 4 5 6 7; do curl -s http://$i.denied.test/ > /dev/null; done")
	require.Equal(t, 5, strings.Count(one.out, "denied connect http://"), one.out)
	require.Contains(t, one.out, "denied connect to 2 more hosts")
	c.stops()
}

// lastCall returns the newest call.
func (d *project) lastCall() string {
	d.t.Helper()
	t, err := d.rt.Load(d.t.Context(), d.last())
	require.NoError(d.t, err)
	return t.Calls[len(t.Calls)-1].Ref.Call
}
