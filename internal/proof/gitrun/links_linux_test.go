package gitrun_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/gitrun"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestLinks makes programs write files that git would run to random places, in
// repositories whose users lead git through random links. The files that the
// default policy allows must make the user's git run nothing. The same scripts
// without remit do run code.
func TestLinks(t *testing.T) {
	for _, name := range []string{"git", "bash"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("this machine has no " + name)
		}
	}
	first, count := seeds(t, 6)
	calls, denied, plain := 0, 0, 0
	for seed := first; seed < first+count; seed++ {
		s := gitrun.Links(seed)
		bare := trapped(t, s)
		for _, script := range s.Calls {
			shell(t, bare, script)
		}
		shell(t, bare, s.Victim)
		if _, err := os.Stat(filepath.Join(bare, gitrun.Mark)); err == nil {
			plain++
		}
		dir := trapped(t, s)
		d, err := handle.New(handle.Config{Scratch: filepath.Join(t.TempDir(), "scratch")})
		require.NoError(t, err)
		rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Tools(builtin.Programs()...), agent.Root("workspace", dir), agent.Driver(d))
		require.NoError(t, err)
		session, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
		require.NoError(t, err)
		tx, err := session.Begin(t.Context())
		require.NoError(t, err)
		for _, script := range s.Calls {
			o, _ := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": script})
			if calls++; o.Status == tool.StatusDenied {
				denied++
			}
		}
		require.NoError(t, tx.Commit(t.Context()))
		require.NoError(t, rt.Close())
		shell(t, dir, s.Victim)
		require.NoFileExists(t, filepath.Join(dir, gitrun.Mark), "seed %d\n%s\n%q\n%s", seed, s.Setup, s.Calls, s.Victim)
	}
	t.Logf("%d traps, of which %d run code without remit; %d calls, %d denied; none ran code", count, plain, calls, denied)
}

// trapped creates the repository of a trap.
func trapped(t *testing.T, s gitrun.Trap) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ws")
	require.NoError(t, os.Mkdir(dir, 0o755))
	shell(t, dir, s.Setup)
	return dir
}

// shell runs a script of the user, which may fail.
func shell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + filepath.Dir(dir), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%v: %s", err, out)
	}
}
