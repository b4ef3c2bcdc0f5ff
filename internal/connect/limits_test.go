package connect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
)

// TestLimits: connecting a client says what is weaker on a system, and nothing
// on Linux.
func TestLimits(t *testing.T) {
	require.Empty(t, connect.Limits("linux"))
	for _, system := range []string{"linux", "darwin", "windows"} {
		w := newTestHome(t)
		w.OS = system
		w.Hooks = []connect.Scope{connect.User}
		c, err := connect.ClientByName("claude-code")
		require.NoError(t, err)
		r, err := c.Connect(w.Environment, connect.Write)
		require.NoError(t, err)
		notes := strings.Join(r.Coverage.Notes, "\n")
		require.Equal(t, system != "linux", strings.Contains(notes, "no sandbox"), notes)
		for _, limit := range connect.Limits(system) {
			require.Contains(t, notes, limit)
		}
	}
}
