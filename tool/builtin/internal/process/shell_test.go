package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// TestShellThatIsNamed: the description names the shell that runs a script, which is
// bash if there is one; a call can name the other.
func TestShellThatIsNamed(t *testing.T) {
	w := newProgramSetup(t)
	for _, shell := range []string{"bash", "sh"} {
		said := process.ToolsOf(shell)[1].Spec().Description
		require.True(t, strings.HasPrefix(said, "Run a script of "+shell+" in the workspace"), said)
	}
	if process.Shell() != "bash" {
		t.Skip("this machine has no bash")
	}
	files := func() int {
		all, err := filepath.Glob(filepath.Join(w.dir, "X*"))
		require.NoError(t, err)
		for _, one := range all {
			require.NoError(t, os.Remove(one))
		}
		return len(all)
	}
	_, o := w.shell(t, "touch X{1..5}.csv")
	require.Equal(t, tool.StatusDone, o.Status)
	require.Equal(t, 5, files())
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"shell": "sh", "script": `echo "$0"; [ -z "$BASH_VERSION" ] || [ "$0" = sh ]`})
	require.NoError(t, err, o.Text)
	require.Equal(t, "sh\n", o.Text)
	_, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"shell": "zsh", "script": "true"})
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.NoError(t, tx.Commit(t.Context()))
}

// TestUsualFolders: programs of the system's and the toolchains' usual folders are
// found by name.
func TestUsualFolders(t *testing.T) {
	w := newProgramSetup(t)
	_, o := w.shell(t, `echo "$PATH"`)
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin"} {
		require.Contains(t, strings.Split(strings.TrimSpace(o.Text), ":"), dir)
	}
}
