package hook

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
)

// TestUserPolicy checks which policy a user's files make: a file extends the
// pack, a folder replaces it, and a file that does not load is an error.
func TestUserPolicy(t *testing.T) {
	config, pack := t.TempDir(), []string{"builtin:coding-agent"}
	require.Equal(t, pack, userPolicy(config, pack))

	own := filepath.Join(config, "coding-agent.rego")
	require.NoError(t, os.WriteFile(own, []byte("package remit.coding_agent\n\nsafe_tools contains \"mcp__issues__search\"\n"), 0o600))
	paths := userPolicy(config, pack)
	require.Equal(t, []string{"builtin:coding-agent", own}, paths)
	_, err := policyfile.Load(paths, false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(own, []byte("package"), 0o600))
	_, err = policyfile.Load(paths, false)
	require.Error(t, err)

	folder := filepath.Join(config, "coding-agent")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.Equal(t, []string{folder}, userPolicy(config, pack))
}
