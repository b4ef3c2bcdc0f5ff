package agentclients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// guarded is a person's home with remit connected to one client.
type guarded struct {
	t       *testing.T
	client  agentclients.Client
	program string
	base    string
	home    string
	dir     string
	apart   bool // the events come from a client that has ended

	terminal *agentclients.Terminal // of the person, if the test opens one
}

// newGuarded builds remit and connects it to a client.
func newGuarded(t *testing.T, c agentclients.Client) *guarded {
	t.Helper()
	base, err := os.MkdirTemp("", "guarded")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	g := &guarded{t: t, client: c, base: base, program: filepath.Join(base, "bin", "remit"), home: filepath.Join(base, "home"), dir: filepath.Join(base, "home", "src")}
	for _, dir := range []string{g.home, g.dir, filepath.Dir(g.program)} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	build := exec.Command("go", "build", "-o", g.program, "github.com/remit-dev/remit/cmd/remit")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	g.remit("connect", c.Name)
	return g
}

// remit runs the command as the person, and returns its output.
func (g *guarded) remit(args ...string) (string, int) {
	g.t.Helper()
	cmd := g.command(args...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// command is the command as the person runs it.
func (g *guarded) command(args ...string) *exec.Cmd {
	cmd := exec.Command(g.program, args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "HOME="+g.home, "XDG_STATE_HOME="+filepath.Join(g.base, "state"), "XDG_CONFIG_HOME=")
	return cmd
}

// run lets the client work on prompts.
func (g *guarded) run(prompts ...agentclients.Prompt) agentclients.Transcript {
	g.t.Helper()
	tr := g.client.Run(g.t, agentclients.Session{
		Dir: g.dir, Home: g.home, Prompts: prompts, Env: []string{"XDG_STATE_HOME=" + filepath.Join(g.base, "state")},
	})
	for i, o := range tr.Outcomes {
		for _, e := range o.Calls {
			g.t.Logf("prompt %d: %s %s -> %s", i, e.Tool, e.Args, strings.TrimSpace(e.Result))
		}
	}
	return tr
}

// shellOf returns a call of a client's shell.
func shellOf(client, command string) fakemodel.Call {
	switch client {
	case "claude-code":
		return agentclients.Call("Bash", map[string]any{"command": command, "description": "run a command"})
	case "codex":
		return agentclients.Call("exec_command", map[string]any{"cmd": command})
	case "gemini-cli":
		return agentclients.Call("run_shell_command", map[string]any{"command": command})
	default:
		return agentclients.Call("bash", map[string]any{"command": command, "description": "run a command"})
	}
}

// commands is a prompt with one turn for each command.
func commands(client, text string, all ...string) agentclients.Prompt {
	p := agentclients.Prompt{Text: text}
	for _, command := range all {
		p.Turns = append(p.Turns, agentclients.Turn(shellOf(client, command)))
	}
	return p
}

// TestRemit lets real agents work with remit connected, and undoes each prompt.
func TestRemit(t *testing.T) {
	if os.Getenv("REMIT_PROVE") == "" {
		t.Skip("starts programs from npm: make prove ARGS=clients, or REMIT_PROVE=1")
	}
	for _, c := range agentclients.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			g := newGuarded(t, c.Install(t))
			write(t, filepath.Join(g.dir, "notes.txt"), "one\n")
			require.NoError(t, os.Mkdir(filepath.Join(g.dir, "sub"), 0o755))
			write(t, filepath.Join(g.dir, "sub", "b.txt"), "two\n")
			var was []treecheck.Tree
			was = append(was, g.tree())
			g.run(commands(c.Name, "first", "cat notes.txt; rm -rf sub notes.txt; echo new > made.txt; echo failed >&2; exit 3"))
			require.NoFileExists(t, filepath.Join(g.dir, "notes.txt"))
			log, _ := g.remit("log")
			t.Log(log)
			out, code := g.remit("undo")
			t.Log(out)
			require.Zero(t, code)
			g.same(was[0])
		})
	}
}

func (g *guarded) tree() treecheck.Tree {
	g.t.Helper()
	tree, err := treecheck.Capture(g.dir)
	require.NoError(g.t, err)
	return tree
}

func (g *guarded) same(was treecheck.Tree) {
	g.t.Helper()
	for _, diff := range treecheck.Compare(was, g.tree()) {
		if !strings.HasPrefix(diff.String(), `".": directory mtime`) {
			require.Fail(g.t, diff.String())
		}
	}
}
