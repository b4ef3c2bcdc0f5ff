package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// dig makes folders in one another until their path is longer than the system takes in one piece, and a file
// below them.
func dig(t *testing.T, dir string) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	name := strings.Repeat("p", 200)
	for range 25 {
		require.NoError(t, unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	f, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	require.NoError(t, err)
	require.NoError(t, unix.Close(f))
	require.NoError(t, unix.Close(at))
}

// TestPathsTooLong: a path that is longer than the system takes keeps no program from running that does not
// change it. A copy of the root cannot have it, and the answer says so. Where a policy hides names, the folder
// that cannot be searched is hidden.
func TestPathsTooLong(t *testing.T) {
	masking := deciding(func(perm.Request) perm.Decision {
		return allowed(perm.Details{Masks: []string{"file://workspace/**/.env"}})
	})
	for _, policy := range []struct {
		name   string
		policy agent.Option
		masks  bool
	}{{"all is seen", allowAll(), false}, {"masks", masking, true}} {
		for _, way := range writeModeCases(t) {
			t.Run(policy.name+way.name, func(t *testing.T) {
				w := newProgramSetup(t, policy.policy, agent.Driver(way.driver))
				top := filepath.Join(w.dir, strings.Repeat("p", 200))
				t.Cleanup(func() { _ = os.RemoveAll(top) })
				dig(t, w.dir)
				txn, o := w.shell(t, "echo new > new")
				require.FileExists(t, filepath.Join(w.dir, "new"))
				_, err := w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				require.NoFileExists(t, filepath.Join(w.dir, "new"))
				if way.name == "" || policy.masks {
					return
				}
				require.Contains(t, o.Text, "is longer than the system takes")
				tx, err := w.s.Begin(t.Context())
				require.NoError(t, err)
				o, err = tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "rm -r p*"})
				require.Error(t, err)
				require.NoError(t, tx.Commit(t.Context()))
				require.Contains(t, o.Text, "it was not shown everything")
				require.DirExists(t, top)
			})
		}
	}
}
