package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// opener opens a journal as another process does.
type opener func() journal.Journal

// onJournals runs a test on each kind of journal that processes can share. empty
// returns the opener of a journal that is empty.
func onJournals(t *testing.T, test func(t *testing.T, empty func(t *testing.T) opener)) {
	opening := func(t *testing.T, open func() (journal.Journal, error)) opener {
		return func() journal.Journal {
			j, err := open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, j.Close()) })
			return j
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		test(t, func(t *testing.T) opener {
			dir := filepath.Join(t.TempDir(), "state")
			return opening(t, func() (journal.Journal, error) { return sqlite.Open(t.Context(), dir) })
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url, _ := pgtest.Database(t)
		schemas := 0
		test(t, func(t *testing.T) opener {
			schemas++
			schema, dir := postgres.Schema(fmt.Sprint("j", schemas)), filepath.Join(t.TempDir(), "state")
			return opening(t, func() (journal.Journal, error) { return postgres.OpenNode(t.Context(), url, dir, schema) })
		})
	})
}

// sharing returns runtimes that have one journal open, as processes do.
func sharing(t *testing.T, open opener, n int, opts ...agent.Option) (all []*agent.Runtime) {
	for range n {
		all = append(all, newRuntime(t, append([]agent.Option{agent.Journal(open())}, opts...)...))
	}
	return all
}

// inEach returns a session in each runtime.
func inEach(t *testing.T, all []*agent.Runtime, opts ...agent.SessionOption) (held []*agent.Session) {
	first := newSession(t, all[0], opts...)
	for i, rt := range all {
		s := first
		if i > 0 {
			var err error
			s, err = rt.ResumeSession(t.Context(), first.Token())
			require.NoError(t, err)
		}
		held = append(held, s)
	}
	return held
}

// echoes are tools that do nothing: a policy can tell them apart.
func echoes(t *testing.T) (tools []tool.Tool) {
	for _, name := range []string{"one", "two", "taint"} {
		tl, err := tool.Create(name, "", func(_ context.Context, in string) (string, error) {
			if in == "fail" {
				return "", errors.New("as asked")
			}
			return in, nil
		}, tool.Pure())
		tools = append(tools, mustTool(t, tl, err))
	}
	return tools
}

const tainting = `package remit
allow contains "all" if true
label contains "tainted" if input.tool.name == "taint"
deny contains "tainted" if { input.tool.name == "two"; "tainted" in input.session.labels }
`

// TestLaterCallsOfAnotherProcess has two processes hold one session. What the
// second one does counts in the first one.
func TestLaterCallsOfAnotherProcess(t *testing.T) { onJournals(t, laterCallsOfAnotherProcess) }

func laterCallsOfAnotherProcess(t *testing.T, empty func(t *testing.T) opener) {
	policy := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": tainting + `
limit contains {"budget": "ones", "max": 3, "tools": ["one"]} if input.tool.name == "one"
`}})
	held := inEach(t, sharing(t, empty(t), 2, agent.Tools(echoes(t)...), agent.Policy(policy)))
	call := func(s *agent.Session, name string) error {
		_, err := s.Update(t.Context(), func(tx *agent.Txn) error {
			_, err := tx.Invoke(t.Context(), name, "x")
			return err
		})
		return err
	}
	require.NoError(t, call(held[0], "one"))
	require.NoError(t, call(held[1], "one"))
	require.NoError(t, call(held[1], "one"))
	require.ErrorIs(t, call(held[0], "one"), tool.ErrDenied, "three calls were made")
	require.NoError(t, call(held[0], "two"))
	require.NoError(t, call(held[1], "taint"))
	require.ErrorIs(t, call(held[0], "two"), tool.ErrDenied, "the session is tainted")
}

// TestOneProcessAtATime begins transactions of one session in several processes,
// in an order that follows from a seed. Only one of them has any open, and each
// sees the counts, the labels and the earlier calls that the journal has.
func TestOneProcessAtATime(t *testing.T) { onJournals(t, oneProcessAtATime) }

func oneProcessAtATime(t *testing.T, empty func(t *testing.T) opener) {
	policy := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": tainting}})
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			oneAtATime(t, seed, sharing(t, empty(t), 3, agent.Tools(echoes(t)...), agent.Policy(policy)))
		})
	}
}

func oneAtATime(t *testing.T, seed uint64, processes []*agent.Runtime) {
	r := rand.New(rand.NewPCG(seed, 7))
	held := inEach(t, processes)
	open, calls := make([][]*agent.Txn, len(held)), map[string]int{}
	for step := range 120 {
		p := r.IntN(len(held))
		about := fmt.Sprintf("seed %d, step %d, process %d", seed, step, p)
		elsewhere := false
		for other, txns := range open {
			elsewhere = elsewhere || other != p && len(txns) > 0
		}
		switch what := r.IntN(4); {
		case elsewhere && r.IntN(10) > 0: // or most steps would be refused
		case len(open[p]) == 0 || what == 0 && len(open[p]) < 3:
			tx, err := held[p].Begin(t.Context())
			if elsewhere {
				require.ErrorIs(t, err, revert.ErrBusy, about)
				continue
			}
			require.NoError(t, err, about)
			open[p] = append(open[p], tx)
			now := time.Now()
			want, err := agent.RebuiltAt(t.Context(), held[p], now)
			require.NoError(t, err)
			require.Equal(t, want, agent.FactsAt(held[p], now), about)
			for _, name := range []string{"one", "taint"} {
				require.Equal(t, calls[name], countOf(want, name), "%s, %s: %v", about, name, want.Recent)
			}
		case what < 3 && r.IntN(4) > 0:
			name := []string{"one", "two", "taint"}[r.IntN(3)]
			in := []string{"x", "fail"}[r.IntN(2)]
			_, err := open[p][r.IntN(len(open[p]))].Invoke(t.Context(), name, in)
			if name != "two" {
				calls[name]++
				require.Equal(t, in == "fail", err != nil, "%s: %v", about, err)
			}
		default:
			tx := open[p][0]
			open[p] = open[p][1:]
			require.NoError(t, tx.Commit(t.Context()), about)
		}
	}
}

// steppedJournal stops at the looks of its process for what others did.
type steppedJournal struct {
	*sqlite.Journal

	ask, read func() // nil: nothing
}

func (j *steppedJournal) Others(ctx context.Context) (int64, error) {
	if ask := j.ask; ask != nil {
		j.ask = nil
		ask()
	}
	return j.Journal.Others(ctx)
}

func (j *steppedJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if read := j.read; read != nil && slices.Contains(q.Kinds, record.KindBegun) {
		j.read = nil
		read()
	}
	return j.Journal.Entries(ctx, q)
}

// TestLaterBeginning has another process begin a transaction just after this
// one, and look for others only when this one has ended. The next transaction
// here finds it, although the other process has written nothing since.
func TestLaterBeginning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *steppedJournal {
		j, err := sqlite.Open(t.Context(), dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		return &steppedJournal{Journal: j}
	}
	mine, its := open(), open()
	use := func(j *steppedJournal) *agent.Runtime {
		return newRuntime(t, agent.Journal(j), agent.Tools(echoes(t)...), agent.Policy(allowAll()))
	}
	held := inEach(t, []*agent.Runtime{use(mine), use(its)})
	first := begin(t, held[0])
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	mine.ask = func() {
		its.read = func() { close(begun); <-goOn }
		go func() {
			_, err := held[1].Begin(t.Context())
			done <- err
		}()
		<-begun
		_, err := first.Invoke(t.Context(), "one", "x") // this process finds what the other one wrote
		require.NoError(t, err)
	}
	second := begin(t, held[0])
	require.NoError(t, first.Commit(t.Context()))
	require.NoError(t, second.Commit(t.Context()))
	close(goOn)
	require.NoError(t, <-done, "nothing is open here")
	_, err := held[0].Begin(t.Context())
	require.ErrorIs(t, err, revert.ErrBusy)
}

// countOf is how often a tool ran.
func countOf(f perm.SessionFacts, name string) int {
	for tl, c := range f.Tools.All() {
		if tl == name {
			return c.Run + c.Failed
		}
	}
	return 0
}

// TestProcessesInARace has processes begin at the same time, again and again,
// under a budget. No call more than it allows is made.
func TestProcessesInARace(t *testing.T) { onJournals(t, processesInARace) }

func processesInARace(t *testing.T, empty func(t *testing.T) opener) {
	const most = 20
	var ran atomic.Int32
	slow, err := tool.Create("slow", "", func(_ context.Context, in string) (string, error) {
		ran.Add(1)
		return in, nil
	}, tool.Pure())
	policy := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": fmt.Sprintf(`package remit
allow contains "all" if true
limit contains {"budget": "calls", "max": %d, "tools": ["slow"]} if true
`, most)}})
	held := inEach(t, sharing(t, empty(t), 3, agent.Tools(mustTool(t, slow, err)), agent.Policy(policy)))
	var all sync.WaitGroup
	for p, s := range held {
		for range 2 {
			all.Go(func() {
				for denied := false; !denied; {
					_, err := s.Update(t.Context(), func(tx *agent.Txn) error {
						_, err := tx.Invoke(t.Context(), "slow", "x")
						return err
					})
					denied = errors.Is(err, tool.ErrDenied)
					if err != nil && !denied && !errors.Is(err, revert.ErrBusy) {
						t.Errorf("process %d: %v", p, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, most, ran.Load())
}

// TestUsesInSeveralProcesses has a session and its delegates, in several
// processes, use up one grant. No call more starts.
func TestUsesInSeveralProcesses(t *testing.T) { onJournals(t, usesInSeveralProcesses) }

func usesInSeveralProcesses(t *testing.T, empty func(t *testing.T) opener) {
	const most = 15
	var ran atomic.Int32
	use, err := tool.Create("use", "", func(_ context.Context, in string) (string, error) {
		ran.Add(1)
		return in, nil
	}, tool.Pure())
	runtimes := sharing(t, empty(t), 3, agent.Tools(mustTool(t, use, err)), agent.Policy(allowAll()))
	parent := hand(t, newSession(t, runtimes[0]), agent.MaxUses(most))
	held := []*agent.Session{parent}
	for _, rt := range runtimes[1:] {
		child, err := rt.ResumeSession(t.Context(), hand(t, parent).Token())
		require.NoError(t, err)
		held = append(held, child)
	}
	var all sync.WaitGroup
	for _, s := range held {
		for range 2 {
			all.Go(func() {
				for {
					if _, err := s.Call(t.Context(), "use", "x"); err != nil {
						if !errors.Is(err, tool.ErrDenied) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
	}
	all.Wait()
	require.EqualValues(t, most, ran.Load())
}

// TestDeadProcess ends a process with an open transaction. The next one counts
// its calls, also after another one has taken the transaction over.
func TestDeadProcess(t *testing.T) { onJournals(t, deadProcess) }

func deadProcess(t *testing.T, empty func(t *testing.T) opener) {
	policy := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": tainting}})
	runtimes := sharing(t, empty(t), 3, agent.Tools(echoes(t)...), agent.Policy(policy))
	held := inEach(t, runtimes)
	first := begin(t, held[0])
	_, err := first.Invoke(t.Context(), "taint", "x")
	require.NoError(t, err)
	_, err = held[1].Begin(t.Context())
	require.ErrorIs(t, err, revert.ErrBusy)
	require.NoError(t, runtimes[0].Journal().Close()) // as the end of its process
	tx := begin(t, held[1])
	_, err = tx.Invoke(t.Context(), "two", "x")
	require.ErrorIs(t, err, tool.ErrDenied, "tainted by the process that is gone")
	_, err = runtimes[2].ResumeTxn(t.Context(), first.ID())
	require.ErrorIs(t, err, revert.ErrBusy, "the session is in the second process")
	require.NoError(t, tx.Commit(t.Context()))
	tx = begin(t, held[1]) // the third process took nothing over
	require.NoError(t, tx.Commit(t.Context()))
	again, err := runtimes[2].ResumeTxn(t.Context(), first.ID())
	require.NoError(t, err)
	_, err = again.Invoke(t.Context(), "one", "x")
	require.NoError(t, err)
	_, err = held[1].Begin(t.Context())
	require.ErrorIs(t, err, revert.ErrBusy)
	require.NoError(t, again.Commit(t.Context()))
	begin(t, held[1])
	now := time.Now()
	want, err := agent.RebuiltAt(t.Context(), held[1], now)
	require.NoError(t, err)
	require.Equal(t, want, agent.FactsAt(held[1], now))
	require.Equal(t, 1, countOf(want, "one"))
}
