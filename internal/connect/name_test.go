package connect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestNamesTheGatewayTakes: clients take any name for a server. Behind the gateway it has one that the gateway takes; disconnecting
// gives it back as it was.
func TestNamesTheGatewayTakes(t *testing.T) {
	names := []string{"plain", "my server", "with.dots.1", "under__scores", "ends_", "_begins", "日本", "a/b", strings.Repeat("long ", 20), `say "hi"`}
	var text strings.Builder
	for i, name := range names {
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		_, _ = fmt.Fprintf(&text, "[mcp_servers.%s]\ncommand = \"c%d\"\n\n[mcp_servers.%s.env]\nK = \"%d\"\n\n", quoted, i, quoted, i)
	}
	w := newTestHome(t)
	w.write(codexFile, text.String())
	r := w.connect("codex")
	c, err := config.Parse(gatewayFile, []byte(w.read(gatewayFile)), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	require.Len(t, c.Servers, len(names))
	as := map[string]string{}
	for _, s := range r.Files[0].Servers {
		as[s.Name] = s.GatewayName
	}
	require.Len(t, as, len(names))
	require.Equal(t, "my-server", as["my server"])
	require.Empty(t, as["plain"])
	require.Empty(t, as["with.dots.1"])
	require.False(t, w.connect("codex").Changed())
	w.disconnect("codex")
	require.Equal(t, map[string]string{codexFile: text.String()}, w.tree("home", "state"))
}

// TestNamesThatAreAlike: the gateway would start neither of two servers whose names could be taken for one another, so that the
// second one is refused before anything is written.
func TestNamesThatAreAlike(t *testing.T) {
	for _, two := range [][2]string{{"my server", "my-server"}, {"git.hub", "github"}, {"Files", "files"}} {
		w := newTestHome(t)
		w.write(codexFile, fmt.Sprintf("[mcp_servers.%q]\ncommand = \"a\"\n\n[mcp_servers.%q]\ncommand = \"b\"\n", two[0], two[1]))
		before := w.tree("home", "state")
		_, err := w.client("codex").Connect(w.Environment, connect.Write)
		var conflict *connect.ConflictError
		require.ErrorAs(t, err, &conflict, "%v", two)
		require.Equal(t, before, w.tree("home", "state"))
	}
}
