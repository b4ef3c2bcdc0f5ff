//go:build linux

package killtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

func TestMain(m *testing.M) {
	process.Main()
	if text := os.Getenv(orderEnv); text != "" {
		os.Exit(child(text))
	}
	code := m.Run()
	_ = os.RemoveAll(leftBehind)
	os.Exit(code)
}

// leftBehind is a folder to remove at the end; empty: none.
var leftBehind string

// testEnv is shared by all chains.
type testEnv struct {
	self         string // the program to kill
	memory, disk string
	kinds        []*workKind
}

// workKind is a kind of work, and the points of each process without a kill.
type workKind struct {
	workers, calls int
	sandbox        bool
	points         map[string][]string
	took           map[string]time.Duration
}

func (k *workKind) String() string {
	return fmt.Sprintf("%d workers, %d calls each, sandbox %v: %d points at work, %d while all is reverted",
		k.workers, k.calls, k.sandbox, len(k.points["work"]), len(k.points["revert"]))
}

func (l *testEnv) kind(seed uint64) *workKind { return l.kinds[seed%uint64(len(l.kinds))] }

func newTestEnv(t *testing.T) *testEnv {
	l := &testEnv{self: self(), disk: t.TempDir()}
	require.NotEmpty(t, l.self)
	var err error
	l.memory, err = place(l.disk)
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(l.memory) })
	kinds := []*workKind{{workers: 1, calls: 4}, {workers: 2, calls: 5}, {workers: 3, calls: 4}}
	if sandboxed(t, l) {
		kinds = append(kinds, &workKind{workers: 1, calls: 15, sandbox: true})
	}
	for n, k := range kinds {
		l.kinds = []*workKind{k}
		l.measure(t, k, uint64(n+1))
		t.Log(k)
	}
	l.kinds = kinds
	return l
}

// sandboxed reports whether this machine supports the sandbox.
func sandboxed(t *testing.T, l *testEnv) bool {
	l.kinds = []*workKind{{workers: 1, calls: 20, sandbox: true}}
	c, err := l.newChain(1)
	require.NoError(t, err)
	defer c.end()
	o := c.order
	o.Does = "work"
	cmd, _, err := l.command(o)
	require.NoError(t, err)
	if cmd.Run() == nil {
		return true
	}
	require.Contains(t, fmt.Sprint(cmd.Stderr), "remit doctor")
	t.Log("there is no sandbox on this machine: no program is killed")
	return false
}

// measure runs processes without a kill: the control.
func (l *testEnv) measure(t *testing.T, k *workKind, seed uint64) {
	k.points, k.took = map[string][]string{}, map[string]time.Duration{}
	c, err := l.newChain(seed)
	require.NoError(t, err)
	defer c.end()
	for i := range c.order.Plan {
		c.order.Plan[i][len(c.order.Plan[i])-1].Tool = "commit"
	}
	trace := filepath.Join(c.dir, "trace")
	for _, does := range []string{"work", "recover", "revert", "redo"} {
		o := c.order
		o.Does, o.Trace = does, trace
		cmd, out, err := l.command(o)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, cmd.Run(), "%s: %s", does, cmd.Stderr)
		k.took[does] = time.Since(began)
		c.output += out.String()
		raw, err := os.ReadFile(trace)
		require.NoError(t, err)
		k.points[does] = strings.Fields(string(raw))
		if does == "work" {
			now, err := look(c.dir)
			require.NoError(t, err)
			require.NotEmpty(t, difference(c.before, now), "it works")
		}
	}
	require.NoError(t, c.judge(t.Context()))
}

// TestKills kills chains of processes: one that works, at a point or at some
// time, and up to three that recover, revert or redo its work. Then everything
// is reverted, twice. Files, rows and service are as before, except for what
// the journal says is left. No key has two effects, and all earlier output is
// true.
//
// An ordinary run uses a sample, REMIT_LONG 500 kills, REMIT_PROVE 10,000.
// REMIT_CHAIN is the seed of one chain, which is repeated: the machine decides
// where a kill falls between the writes of several workers.
func TestKills(t *testing.T) {
	if elsewhere(t) {
		return
	}
	l := newTestEnv(t)
	n, kills := chains(t), 0
	hit := map[string]int{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	violations, next := 0, n.first
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				mu.Lock()
				seed := next
				next++
				more := kills < n.kills && seed < n.last && violations < 20
				mu.Unlock()
				if !more {
					return
				}
				c, err := l.once(t.Context(), n.seed(seed))
				mu.Lock()
				if c != nil {
					if kills/1000 < (kills+c.kills)/1000 { // shows progress
						t.Logf("%d kills", kills+c.kills)
					}
					kills += c.kills
					for _, at := range c.hit {
						hit[at]++
					}
				}
				if err != nil {
					violations++
					t.Errorf("%v\nREMIT_CHAIN=%d go test ./internal/proof/killtest -run '^TestKills$'", err, n.seed(seed))
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	for _, does := range []string{"work", "recover", "revert", "redo"} {
		l.logPoints(t, does, hit)
	}
	t.Logf("proved: real kills: %d kills of %d chains, %d violations", kills, next-n.first, violations)
}

// once runs one chain.
func (l *testEnv) once(ctx context.Context, seed uint64) (*chain, error) {
	c, err := l.newChain(seed)
	if err != nil {
		return nil, err
	}
	defer c.end()
	return c, c.run(ctx)
}

// logPoints logs at which points processes were killed, and at which never.
func (l *testEnv) logPoints(t *testing.T, does string, hit map[string]int) {
	var missed []string
	all := map[string]bool{}
	for _, k := range l.kinds {
		for _, p := range k.points[does] {
			if all[p] = true; hit[does+" "+p] == 0 && !slices.Contains(missed, p) {
				missed = append(missed, p)
			}
		}
	}
	slices.Sort(missed)
	t.Logf("%s: killed at %d of %d points, %d times by time; never at %v", does, len(all)-len(missed), len(all), hit[does+" "], missed)
	if os.Getenv("REMIT_PROVE") != "" && does == "work" {
		require.Empty(t, missed, "points at which nobody was killed")
	}
}

// extent says which chains run.
type extent struct {
	first, last uint64
	kills       int
	only        uint64
}

func (e extent) seed(n uint64) uint64 {
	if e.only > 0 {
		return e.only
	}
	return n
}

// seedOf returns REMIT_SEED, or a fixed seed.
func seedOf(t *testing.T) uint64 {
	text := os.Getenv("REMIT_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "REMIT_SEED")
	return seed
}

// few is the number of chains of an ordinary run.
const few = 6

func chains(t *testing.T) extent {
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
		require.NoError(t, err, name)
		return n
	}
	switch {
	case os.Getenv("REMIT_CHAIN") != "":
		return extent{first: 0, last: 20, kills: 1 << 20, only: number("REMIT_CHAIN")}
	case os.Getenv("REMIT_PROVE") != "":
		return extent{first: 1, last: 1 << 20, kills: 10_000}
	case statcheck.Whole():
		return extent{first: 1, last: 1 << 20, kills: 500}
	case os.Getenv("REMIT_SEED") != "":
		first := number("REMIT_SEED") * 1000
		return extent{first: first, last: first + few, kills: 1 << 20}
	}
	return extent{first: 1, last: 1 + few, kills: 1 << 20}
}
