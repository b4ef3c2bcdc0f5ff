package agentclients_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// victims says which processes of a person a kill ends.
type victims string

const (
	theAgent    victims = "the agent"
	itsPrograms victims = "the agent and its programs"
	theResident victims = "the resident process"
	ofRemit     victims = "all processes of remit"
	everything  victims = "everything"
)

// kinds are the kills, in turns.
var kinds = []victims{theAgent, itsPrograms, theResident, ofRemit, everything}

// killRounds is how many sessions of a client are killed: a session of a slow
// client takes ten times as long.
func killRounds(client string) int {
	rounds := map[string]int{"claude-code": 100, "codex": 100, "gemini-cli": 20, "opencode": 10}[client]
	if os.Getenv("REMIT_LONG") == "" {
		return min(rounds, 2*len(kinds))
	}
	return rounds
}

// killRules lets commands run in the sandbox, or observed if they say so.
const killRules = `package remit

allow contains "all"

deny contains "the test wants this command observed" if {
	input.tool.name == "client_shell"
	contains(input.call.args.command, "observed")
}
`

// TestKilledAgents kills real agents, remit or both with SIGKILL at random
// moments of their work. An undo brings the tree back or names what is left, and
// the next session works.
func TestKilledAgents(t *testing.T) {
	prove(t)
	for _, c := range agentclients.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			g := newGuarded(t, c.Install(t))
			g.allows(t)
			g.files()
			span := g.unkilled()
			k := kills{guarded: g, span: span}
			for round := range killRounds(c.Name) {
				if !t.Run(fmt.Sprintf("%d %s", round, kinds[round%len(kinds)]), func(t *testing.T) {
					g.t = t
					k.round(rand.New(rand.NewPCG(2, uint64(round))), round)
				}) {
					k.wrong++
				}
			}
			g.t = t
			next := g.run(commands(c.Name, "next.", "echo next > next.txt"))
			require.FileExists(t, filepath.Join(g.dir, "next.txt"), "%+v", next.Outcomes)
			_, code := g.remit("undo", g.entries("next.")[0].Prompt.ID)
			require.Zero(t, code)
			require.NoFileExists(t, filepath.Join(g.dir, "next.txt"))
			t.Logf("proved: undo after kill -9 of %s or remit, within %v: %d moments, %d of them of running calls; %d exact, %d but for times of folders, %d named; %d violations",
				c.Name, span.Round(time.Millisecond), killRounds(c.Name), k.midst, k.exact, k.times, k.named, k.wrong)
		})
	}
}

// allows writes the rules of the test in place of the pack, until its end.
func (g *guarded) allows(t *testing.T) {
	rules := filepath.Join(g.home, ".config", "remit", "coding-agent")
	require.NoError(t, os.MkdirAll(rules, 0o700))
	write(t, filepath.Join(rules, "rules.rego"), killRules)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(rules)) })
}

// kills counts what rounds showed.
type kills struct {
	*guarded
	span                              time.Duration // of the work without a kill
	midst, exact, times, named, wrong int
}

// killWork is what the agent does. An agent that is killed alone leaves its
// observed commands, which nobody follows any more, so it has none then.
func killWork(what victims) []step {
	const slow = "for i in 1 2 3 4; do mkdir -p d$i; echo $i > d$i/f; sleep 0.03; done; rm -rf sub; sed -i s/two/TWO/ notes.txt"
	all := []step{
		sh("echo > begun"), sh(slow), writes("made/w.txt", "written\n"), edits("notes.txt", "three\n", "THREE\n"), sh("mv notes.txt n2.txt; rm -rf d1 keep; chmod 700 d2"),
	}
	if what != theAgent {
		all = append(all, sh(": observed; for i in 5 6 7; do mkdir d$i; echo $i > d$i/f; sleep 0.03; done; mv d2 d9; rm n2.txt"), writes("last.txt", "x\n"))
	}
	return all
}

// killPrompt is a prompt with a turn for each step.
func (g *guarded) killPrompt(text string, what victims) agentclients.Prompt {
	p := agentclients.Prompt{Text: text}
	for _, s := range killWork(what) {
		p.Turns = append(p.Turns, agentclients.Turn(s.call(g.client.Name, g.dir)))
	}
	return p
}

// unkilled plays a session to its end, undoes it, and returns how long its work
// took.
func (g *guarded) unkilled() time.Duration {
	g.t.Helper()
	was, began := g.tree(), time.Time{}
	tr := g.play(g.killPrompt("unkilled.", everything), func(func()) { began = g.begun() })
	span := time.Since(began)
	for _, e := range tr.Outcomes[0].Calls {
		g.t.Logf("%s %.100s -> %.200s", e.Tool, e.Args, e.Result)
	}
	require.FileExists(g.t, filepath.Join(g.dir, "last.txt"), "%+v", tr.Outcomes)
	require.FileExists(g.t, filepath.Join(g.dir, "d9", "f"))
	out := g.undoAll("unkilled.")
	require.Empty(g.t, g.differences(was), out)
	return span
}

// play runs one prompt, and something beside it.
func (g *guarded) play(p agentclients.Prompt, beside func(kill func())) agentclients.Transcript {
	g.t.Helper()
	return g.client.Run(g.t, agentclients.Session{
		Dir: g.dir, Home: g.home, Prompts: []agentclients.Prompt{p}, Env: []string{"XDG_STATE_HOME=" + g.state()}, Beside: beside,
	})
}

// begun waits until the work has begun, for at most two minutes.
func (g *guarded) begun() time.Time {
	for range 24000 {
		if _, err := os.Stat(filepath.Join(g.dir, "begun")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Now()
}

// undoAll undoes a prompt as a person does, who tries again if remit says so.
func (g *guarded) undoAll(name string) (out string) {
	g.t.Helper()
	all := g.entries(name)
	if len(all) == 0 {
		return ""
	}
	for range 100 {
		said, _ := g.remit("undo", all[0].Prompt.ID)
		out += said
		if !strings.Contains(said, "wait for it, or end that process") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return out
}

// round kills one session.
func (k *kills) round(r *rand.Rand, round int) {
	t, what := k.t, kinds[round%len(kinds)]
	k.empty() // the folder itself stays: a running daemon keeps it open
	k.files()
	was := k.tree()
	name := fmt.Sprintf("killed %d.", round)
	var delay time.Duration
	tr := k.play(k.killPrompt(name, what), func(kill func()) {
		k.begun()
		delay = time.Duration(r.Int64N(int64(k.span)))
		time.Sleep(delay) // the moment of the crash
		if what == theAgent {
			kill()
			return
		}
		k.killAll(what)
	})
	out := k.undoAll(name)
	unnamed := k.judge(was, out)
	if !allAnswered(tr) {
		k.midst++
	}
	if len(unnamed) > 0 {
		log, _ := k.remit("log", "--calls")
		daemon, _ := os.ReadFile(filepath.Join(k.state(), "remit", "agents", "log"))
		for _, e := range tr.Outcomes[0].Calls {
			t.Logf("%s %.100s -> %.200s", e.Tool, e.Args, e.Result)
		}
		t.Errorf("after %v: %d differences that the report does not name: %v\n%s\n%.3000s\n%s", delay, len(unnamed), unnamed, out, log, daemon)
	}
}

// judge counts what an undo left, and returns what its report does not name.
func (k *kills) judge(was treecheck.Tree, said string) (unnamed []treecheck.Difference) {
	diffs := k.differences(was)
	times := 0
	for _, d := range diffs {
		switch {
		case d.Field == treecheck.DirMtime:
			times++
		case !strings.Contains(said, d.Path):
			unnamed = append(unnamed, d)
		default:
			k.t.Logf("named: %s", d)
		}
	}
	switch {
	case len(diffs) == 0:
		k.exact++
	case len(diffs) == times:
		k.times++
	case len(unnamed) == 0:
		k.named++
		k.t.Logf("named:\n%s", said)
	}
	return unnamed
}

// allAnswered reports whether the kill came after the work.
func allAnswered(tr agentclients.Transcript) bool {
	calls := tr.Outcomes[0].Calls
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(e exchange) bool { return !e.Answered }) && tr.Outcomes[0].Code == 0
}

// empty deletes what is in the workspace.
func (g *guarded) empty() {
	g.t.Helper()
	all, err := os.ReadDir(g.dir)
	require.NoError(g.t, err)
	for _, e := range all {
		require.NoError(g.t, os.RemoveAll(filepath.Join(g.dir, e.Name())))
	}
}

// killAll kills what runs in this home, until nothing of it is left.
func (g *guarded) killAll(what victims) {
	daemon := g.daemon()
	for range 3 { // a process can start another one before it is killed
		killed := 0
		for _, pid := range g.processes() {
			program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			remits := program == g.program
			switch what {
			case theResident:
				remits = pid == daemon
			case itsPrograms:
				remits = !remits && !sandboxed(pid)
			case everything:
				remits = true
			default:
			}
			if remits && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
		if killed == 0 || what == theResident || what == ofRemit { // the agent starts the next ones
			return
		}
	}
}

// processes are those of this home.
func (g *guarded) processes() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range all {
		env, err := os.ReadFile(name)
		var pid int
		if _, bad := fmt.Sscanf(name, "/proc/%d/", &pid); err == nil && bad == nil && slices.Contains(strings.Split(string(env), "\x00"), "HOME="+g.home) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sandboxed reports whether a process runs in the sandbox.
func sandboxed(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	own, failed := os.Readlink("/proc/self/ns/pid")
	return err == nil && failed == nil && theirs != own
}
