package agentclients_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

// cost is what one session took.
type cost struct{ wall, agent, resident time.Duration }

// load is a session that is measured.
type load struct {
	calls    int
	thinking time.Duration // before each answer of the model
}

// TestCost measures a session of 200 calls with remit connected against the
// same session without, in turns. The model answers at once. It logs medians,
// and judges nothing: the machine can be busy.
func TestCost(t *testing.T) { compareCosts(t, load{calls: 200}) }

// TestCostWithThinking is TestCost with a model that needs one second for each
// answer, and fewer calls.
func TestCostWithThinking(t *testing.T) { compareCosts(t, load{calls: 40, thinking: time.Second}) }

func compareCosts(t *testing.T, l load) {
	prove(t)
	for _, c := range agentclients.Clients() {
		if c.Name != "claude-code" && c.Name != "codex" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			with := newGuarded(t, c.Install(t))
			without := *with
			without.home = filepath.Join(with.base, "bare")
			without.dir = filepath.Join(without.home, "src")
			require.NoError(t, os.MkdirAll(without.dir, 0o755))
			var guarded, bare []cost
			rounds := 3
			if text := os.Getenv("REMIT_ROUNDS"); text != "" {
				_, err := fmt.Sscan(text, &rounds)
				require.NoError(t, err)
			}
			for range rounds {
				bare = append(bare, without.cost(l))
				guarded = append(guarded, with.cost(l))
			}
			g, b := medians(guarded), medians(bare)
			t.Logf("proved: a session of %d calls of %s, %v for each answer: %v with remit, %v without: %.2f times; processor time %v and %v of the resident process, %v without: %.2f times",
				l.calls, c.Name, l.thinking, g.wall, b.wall, g.wall.Seconds()/b.wall.Seconds(), g.agent, g.resident, b.agent, (g.agent+g.resident).Seconds()/b.agent.Seconds())
		})
	}
}

// cost plays the session in an empty workspace.
func (g *guarded) cost(l load) cost {
	t := g.t
	t.Helper()
	g.empty()
	p := agentclients.Prompt{Text: "many calls"}
	for i := range l.calls {
		file, end := fmt.Sprintf("f%d.txt", i/4%20), i/4/20
		if end == 0 {
			write(t, filepath.Join(g.dir, file), strings.Repeat("a line of a file\n", 100)+"end 0\n")
		}
		steps := []step{reads(file), sh("ls; wc -l " + file), edits(file, fmt.Sprintf("end %d\n", end), fmt.Sprintf("end %d\n", end+1)), sh("grep -c line *.txt; echo done")}
		turn := agentclients.Turn(steps[i%4].call(g.client.Name, g.dir))
		if l.thinking > 0 {
			turn.Before = func() { time.Sleep(l.thinking) }
		}
		p.Turns = append(p.Turns, turn)
	}
	before, began := g.resident(), time.Now()
	tr := g.client.Run(t, agentclients.Session{
		Dir: g.dir, Home: g.home, Prompts: []agentclients.Prompt{p}, Env: []string{"XDG_STATE_HOME=" + g.state()}, Limit: 20 * time.Minute,
	})
	all := cost{wall: time.Since(began), agent: tr.Outcomes[0].CPU, resident: g.resident() - before}
	require.Len(t, tr.Outcomes[0].Calls, l.calls, tr.Stderr)
	for _, e := range tr.Outcomes[0].Calls {
		require.NotContains(t, e.Result, "remit")
	}
	t.Logf("%s: %+v", g.home, all)
	return all
}

// resident returns the processor time of the resident process and of what it
// waited for.
func (g *guarded) resident() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.daemon()))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	total := 0
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n := 0
		_, _ = fmt.Sscan(f, &n)
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond
}

// medians returns the median of each part.
func medians(all []cost) cost {
	middle := func(part func(cost) time.Duration) time.Duration {
		var values []time.Duration
		for _, c := range all {
			values = append(values, part(c))
		}
		slices.Sort(values)
		return values[len(values)/2].Round(10 * time.Millisecond)
	}
	return cost{
		middle(func(c cost) time.Duration { return c.wall }), middle(func(c cost) time.Duration { return c.agent }), middle(func(c cost) time.Duration { return c.resident }),
	}
}
