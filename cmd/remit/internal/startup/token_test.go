package startup

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// TestTwoMakeASessionFile: of two first runs, the second one keeps the token of
// the first one, and says how to go on.
func TestTwoMakeASessionFile(t *testing.T) {
	f := Flags{SessionFile: filepath.Join(t.TempDir(), "session")}
	require.NoError(t, f.keepToken("first"))
	var p *cli.Problem
	require.ErrorAs(t, f.keepToken("second"), &p)
	require.Equal(t, cli.ExitUsage, p.Code)
	require.Equal(t, "repeat the command: it goes on with the session of that file", p.Fix)
	token, err := ReadToken(f.SessionFile)
	require.NoError(t, err)
	require.Equal(t, "first", token)
	f.SessionFile = filepath.Join(t.TempDir(), "none", "session")
	require.ErrorAs(t, f.keepToken("x"), &p)
	require.Empty(t, p.Fix)
}
