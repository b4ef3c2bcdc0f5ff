package agentcorpus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/proof/agentcorpus"
	"github.com/remit-dev/remit/internal/sandbox"
	_ "github.com/remit-dev/remit/internal/sandbox/first" // the test binary is its own shim
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert/sqlite"
)

// canary is in every secret of the home folder and the workspace.
const canary = "CANARY-5f2c"

// secrets are the files of the home folder, and what the calls are after.
var secrets = []string{
	".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/authorized_keys", ".netrc", ".pgpass", ".aws/credentials", ".bash_history", ".zsh_history", ".gnupg/key",
	".config/gh/hosts.yml", ".config/gcloud/x", ".claude/settings.json", ".local/state/remit/journal.db", "Documents/a", "src/other/main.go",
	"src/cobra/.env", "src/cobra/.env.local", "src/cobra/.claude/settings.local.json",
}

// proven are hostile calls that run here in the sandbox: those whose harm would
// not reach beyond the folder of the test if the sandbox failed.
var proven = []string{
	"destroy-outside-01", "destroy-outside-03", "destroy-outside-04", "destroy-outside-07", "destroy-outside-11", "destroy-outside-17",
	"destroy-beyond-revert-10", "leak-18", "leak-22", "leak-31", "persistence-03", "persistence-06", "persistence-10", "persistence-11",
	"guard-01", "guard-02", "guard-04", "guard-13", "guard-14", "guard-16",
	"obfuscated-01", "obfuscated-02", "obfuscated-05", "obfuscated-06", "obfuscated-09", "obfuscated-10", "obfuscated-13", "obfuscated-14", "obfuscated-16",
	"obfuscated-20", "obfuscated-23", "obfuscated-24", "obfuscated-25", "obfuscated-26", "obfuscated-27", "obfuscated-28", "obfuscated-29", "obfuscated-30",
	"obfuscated-40", "obfuscated-41", "obfuscated-42",
}

// lab is a home folder with a workspace, and a host that nobody may reach.
type lab struct {
	t        *testing.T
	home     string
	dir      string
	rt       *agent.Runtime
	srv      *hooks.Server
	port     string
	contacts atomic.Int32
	uses     int
}

// TestSandboxHolds runs hostile calls in the sandbox. None may show a secret,
// change a file outside the workspace, change what starts programs, or reach a
// host.
func TestSandboxHolds(t *testing.T) {
	l := newLab(t)
	calls, err := agentcorpus.Hostile()
	require.NoError(t, err)
	byID := map[string]string{}
	for _, c := range calls {
		byID[c.ID], _ = c.Args["command"].(string)
	}
	for _, id := range proven {
		t.Run(id, func(t *testing.T) {
			require.NotEmpty(t, byID[id])
			l.fill(t)
			was := l.outside(t)
			out := l.runs(t, l.here(byID[id]))
			require.NotContains(t, out, canary)
			require.Equal(t, was, l.outside(t), "a file outside the workspace changed")
			require.Zero(t, l.contacts.Load(), "the host was reached")
			l.unleaked(t)
		})
	}
	out := l.runs(t, "cat .env.example; echo kept > made.txt")
	require.Contains(t, out, "PORT=1", "the sandbox runs commands")
	require.FileExists(t, filepath.Join(l.dir, "made.txt"), "changes of the workspace stand")
}

func newLab(t *testing.T) *lab {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	l := &lab{t: t, home: filepath.Join(base, "home", "dev")}
	l.dir = filepath.Join(l.home, "src", "cobra")
	l.fill(t)
	if m, err := sandbox.Probe(t.Context(), "", l.dir, ""); err != nil || m.Level != sandbox.Strict {
		t.Skip("the sandbox is not available here")
	}
	l.listen(t)
	engine, err := rego.New(rego.Options{Sources: []rego.Source{{FS: policies.CodingAgent(), NoTests: true}}, Timeout: time.Minute})
	require.NoError(t, err)
	state := filepath.Join(base, "state")
	j, err := sqlite.Open(t.Context(), state)
	require.NoError(t, err)
	programs, err := process.New(process.Config{Scratch: filepath.Join(state, "scratch")})
	require.NoError(t, err)
	near, err := web.New(web.Options{})
	require.NoError(t, err)
	kept, err := process.NewSnapshotter(process.SnapshotConfig{Dir: filepath.Join(state, "kept")})
	require.NoError(t, err)
	l.rt, err = agent.New(
		agent.Root("workspace", l.dir), agent.Policy(engine), agent.Journal(j), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Driver(programs), agent.Driver(near), agent.Driver(kept), agent.Tools(hooks.Tools()...), agent.SuspendForApproval(),
	)
	require.NoError(t, err)
	space := &hooks.Workspace{Dir: l.dir, Runtime: l.rt, Sandbox: true, Session: func(ctx context.Context, client, _ string) (*agent.Session, error) {
		return l.rt.Session(ctx, perm.Principal{ID: client})
	}}
	l.srv = hooks.New("remit", func(err error) { t.Error(err) }, func(context.Context, string) (*hooks.Workspace, error) { return space, nil })
	t.Cleanup(func() {
		require.NoError(t, l.srv.Close(context.Background()))
		require.NoError(t, l.rt.Close())
		require.NoError(t, j.Close())
	})
	return l
}

// fill writes the files again that an earlier call may have removed from the
// workspace.
func (l *lab) fill(t *testing.T) {
	t.Helper()
	for _, name := range secrets {
		name = filepath.Join(l.home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(canary+" PreToolUse ]\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, ".env.example"), []byte("PORT=1\n"), 0o600))
	require.NoError(t, exec.CommandContext(t.Context(), "git", "init", "-q", l.dir).Run())
}

// listen starts the host of the attacker.
func (l *lab) listen(t *testing.T) {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, l.port, err = net.SplitHostPort(on.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, on.Close()) })
	go func() {
		for {
			c, err := on.Accept()
			if err != nil {
				return
			}
			l.contacts.Add(1)
			_ = c.Close()
		}
	}()
}

// here leads a command to the home folder and the host of the test.
func (l *lab) here(command string) string {
	command = strings.ReplaceAll(command, "/home/dev", l.home)
	for _, host := range []string{"192.0.2.33/443", "192.0.2.6:443", "80,inet_aton(\"192.0.2.2\")"} {
		to := map[byte]string{'/': "127.0.0.1/" + l.port, ':': "127.0.0.1:" + l.port, ',': l.port + ",inet_aton(\"127.0.0.1\")"}
		for sep, place := range to {
			if strings.IndexByte(host, sep) > 0 {
				command = strings.ReplaceAll(command, host, place)
			}
		}
	}
	return command
}

// runs lets the agent run a command, as its client does.
func (l *lab) runs(t *testing.T, command string) string {
	t.Helper()
	l.uses++
	c, _ := hooks.Find("claude-code")
	in, err := json.Marshal(map[string]any{"command": command})
	require.NoError(t, err)
	e := hooks.Event{Moment: hooks.BeforeTool, Name: "PreToolUse", Session: "s", Prompt: "p", Use: string(rune('a' + l.uses)), Tool: "Bash", Dir: l.dir, Input: in}
	a := l.srv.Handle(t.Context(), c, e, "")
	require.Equal(t, hooks.Allow, a.Verdict, a.Reason)
	require.NotNil(t, a.Input, "the command runs in the sandbox")
	var rewritten struct {
		Command string `json:"command"`
	}
	require.NoError(t, json.Unmarshal(a.Input, &rewritten))
	out := l.shows(t, strings.Fields(rewritten.Command)[3])
	e.Moment, e.Name, e.Output = hooks.AfterTool, "PostToolUse", json.RawMessage(`{}`)
	l.srv.Handle(t.Context(), c, e, "")
	return out
}

// shows is the process that the client starts instead of the command.
func (l *lab) shows(t *testing.T, token string) string {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	var out bytes.Buffer
	copied := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, read)
		close(copied)
	}()
	exit := make(chan hooks.Exit, 1)
	environ := []string{"HOME=" + l.home, "PATH=" + os.Getenv("PATH"), "PROD_DATABASE_URL=" + canary}
	require.NoError(t, l.srv.Attach(token, &hooks.Command{
		Dir: l.dir, Environ: environ, Stdin: null, Stdout: write, Stderr: write, Gone: make(chan struct{}), Exit: exit,
	}))
	e := <-exit
	require.NoError(t, write.Close())
	<-copied
	require.NoError(t, read.Close())
	require.NoError(t, null.Close())
	t.Logf("exit code %d: %s%.300s", e.Code, e.Message, out.String())
	return out.String() + e.Message
}

// outside returns the files of the home folder that do not belong to the
// workspace, with their modes and contents.
func (l *lab) outside(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(l.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == l.dir {
			return errorOrSkip(err)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			all[path] += string(content)
			return err
		}
		return nil
	}))
	return all
}

func errorOrSkip(err error) error {
	if err == nil {
		return filepath.SkipDir
	}
	return err
}

// unleaked checks that no secret came into another file of the workspace, and
// that what starts programs is unchanged.
func (l *lab) unleaked(t *testing.T) {
	t.Helper()
	require.NoFileExists(t, filepath.Join(l.dir, ".git", "hooks", "post-checkout"))
	config, err := os.ReadFile(filepath.Join(l.dir, ".git", "config"))
	if !errors.Is(err, fs.ErrNotExist) { // a call may remove the history, which a revert restores
		require.NoError(t, err)
	}
	require.NotContains(t, string(config), "sshCommand")
	require.NoError(t, filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(l.home, path)
		for _, secret := range secrets {
			if name == secret {
				content, err := os.ReadFile(path)
				require.Contains(t, string(content), canary, "%s changed", name)
				return err
			}
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		require.NotContains(t, string(content), canary, name)
		return err
	}))
}
