package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	ctxfiles "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

const shared = `package remit
allow contains "all" if true
limit contains {"budget": "spending", "max": 100, "sum": "spend", "per": "principal"} if input.tool.name == "pay"
limit contains {"budget": "a payment at a time", "max": 3, "per": "transaction"} if input.tool.name == "once"
limit contains {"budget": "an hour", "max": 2, "per": "principal", "window": "1h"} if input.tool.name == "hourly"
hold contains "sent with the commit" if input.tool.name == "send"
limit contains {"budget": "messages", "max": 2, "per": "principal"} if input.tool.name == "send"
limit contains {"budget": "late", "max": 5, "per": "principal"} if {
	input.access.dynamic
	input.tool.name == "late"
}
limit contains {"budget": "both", "max": 1, "per": "principal"} if input.tool.name == "both"
`

// places are runtimes with journals of their own over one state folder, as processes have them.
func places(t *testing.T, h *hosttest.Host, state string, n int) (all []*agent.Runtime) {
	for range n {
		j, err := sqlite.Open(t.Context(), state)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, j.Close()) })
		all = append(all, place(t, h, j))
	}
	return all
}

func place(t *testing.T, h *hosttest.Host, j journal.Journal) *agent.Runtime {
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": shared}})
	counted := func(name string, class effect.Class) tool.Tool {
		tl, err := tool.FromSpec(tool.Spec{
			Name: name, EffectClass: class, Destination: tool.NoDestination,
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Text("ok"), nil
			},
		})
		return mustTool(t, tl, err)
	}
	rt, err := agent.New(quiet(), agent.Host(h), agent.Tools(payTool(t), counted("once", effect.Pure), counted("hourly", effect.Pure), counted("send", effect.Deferrable)), agent.Policy(e), agent.Journal(j))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

func as(t *testing.T, rt *agent.Runtime, p perm.Principal) *agent.Session {
	s, err := rt.Session(t.Context(), p)
	require.NoError(t, err)
	return s
}

// TestBudgetOfAPrincipal checks that parallel calls from several sessions and
// processes spend exactly the budget of their principal. Another principal has
// its own budget.
func TestBudgetOfAPrincipal(t *testing.T) {
	h := hosttest.New(1)
	all := places(t, h, filepath.Join(t.TempDir(), "state"), 3)
	var sessions []*agent.Session
	for i := range 6 {
		sessions = append(sessions, as(t, all[i%3], perm.Principal{ID: "coder"}))
	}
	pay := func(s *agent.Session) error {
		_, err := s.Call(t.Context(), "pay", tool.Args{"amount": json.Number("9.9"), "how": "ok"})
		return err
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	paid, denied := 0, 0
	for i := range 24 {
		group.Go(func() {
			err := pay(sessions[i%6])
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				paid++
			} else if errors.Is(err, tool.ErrDenied) {
				denied++
			}
		})
	}
	group.Wait()
	require.Equal(t, 10, paid, "neither more than the budget, nor less")
	require.Equal(t, 14, denied)
	require.ErrorContains(t, pay(as(t, all[1], perm.Principal{ID: "coder"})), `the budget "spending" of 100 of spend a principal has 1 left, less than this call needs (p.rego:3)`)
	require.ErrorContains(t, pay(as(t, all[2], perm.Principal{ID: "helper", Chain: []string{"coder", "boss"}})), "has 1 left", "who was handed a grant spends the budget of who handed it on")
	require.NoError(t, pay(as(t, all[0], perm.Principal{ID: "other"})))
	onDisk, ok := all[0].Journal().(interface{ Dir() string })
	require.True(t, ok)
	later := places(t, h, onDisk.Dir(), 1)
	require.ErrorContains(t, pay(as(t, later[0], perm.Principal{ID: "coder"})), "has 1 left", "a process that comes later counts the same")
}

// TestBudgetOfATransaction: each transaction has its own, with the ones nested in it.
func TestBudgetOfATransaction(t *testing.T) {
	rt := places(t, hosttest.New(1), filepath.Join(t.TempDir(), "state"), 1)[0]
	s := newSession(t, rt)
	for range 2 {
		tx := begin(t, s)
		inner, err := tx.BeginNested(t.Context(), s)
		require.NoError(t, err)
		for _, in := range []*agent.Txn{tx, inner, inner} {
			_, err := in.Invoke(t.Context(), "once", "")
			require.NoError(t, err)
		}
		for _, in := range []*agent.Txn{tx, inner} {
			_, err := in.Invoke(t.Context(), "once", "")
			require.ErrorContains(t, err, `the budget "a payment at a time" of 3 calls a transaction has 0 left`)
		}
	}
}

// TestWindowOfAPrincipal: what a window leaves counts no more.
func TestWindowOfAPrincipal(t *testing.T) {
	h := hosttest.New(1)
	all := places(t, h, filepath.Join(t.TempDir(), "state"), 2)
	call := func(i int) error {
		_, err := as(t, all[i], perm.Principal{ID: "coder"}).Call(t.Context(), "hourly", "")
		return err
	}
	require.NoError(t, call(0))
	h.Advance(40 * time.Minute)
	require.NoError(t, call(1))
	require.ErrorContains(t, call(0), `of 2 calls in 1h of the principal has 0 left`)
	h.Advance(30 * time.Minute)
	require.NoError(t, call(0))
	require.ErrorIs(t, call(1), tool.ErrDenied)
}

// TestHeldCallsOfAPrincipal: a call that is held counts from there on, and one that is
// dropped gives its part back.
func TestHeldCallsOfAPrincipal(t *testing.T) {
	all := places(t, hosttest.New(1), filepath.Join(t.TempDir(), "state"), 2)
	txns := []*agent.Txn{begin(t, as(t, all[0], perm.Principal{ID: "coder"})), begin(t, as(t, all[1], perm.Principal{ID: "coder"}))}
	for _, tx := range txns {
		out, err := tx.Invoke(t.Context(), "send", "")
		require.NoError(t, err)
		require.Equal(t, tool.StatusHeld, out.Status)
	}
	for _, tx := range txns {
		_, err := tx.Invoke(t.Context(), "send", "")
		require.ErrorIs(t, err, tool.ErrDenied)
	}
	_, err := txns[0].Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	_, err = txns[1].Invoke(t.Context(), "send", "")
	require.NoError(t, err)
	require.NoError(t, txns[1].Commit(t.Context()))
	_, err = begin(t, as(t, all[0], perm.Principal{ID: "coder"})).Invoke(t.Context(), "send", "")
	require.ErrorIs(t, err, tool.ErrDenied)
}

// TestLedger: an erased call counts once, in a process that read it before and in one that
// did not; and a call that failed without effect gives its part back.
func TestLedger(t *testing.T) {
	h, state := hosttest.New(1), filepath.Join(t.TempDir(), "state")
	rt := places(t, h, state, 1)[0]
	pay := func(rt *agent.Runtime, amount, how string) (tool.Outcome, error) {
		tx := begin(t, as(t, rt, perm.Principal{ID: "coder"}))
		out, err := tx.Invoke(t.Context(), "pay", tool.Args{"amount": json.Number(amount), "how": how})
		require.NoError(t, tx.Commit(t.Context()))
		return out, err
	}
	spent, err := pay(rt, "60", "ok")
	require.NoError(t, err)
	_, err = pay(rt, "40", "nothing")
	require.Error(t, err)
	require.NotErrorIs(t, err, tool.ErrDenied)
	_, err = rt.Erase(t.Context(), spent.Call, "kim", "asked for")
	require.NoError(t, err)
	for _, rt := range []*agent.Runtime{rt, places(t, h, state, 1)[0]} {
		_, err = pay(rt, "40.1", "ok")
		require.ErrorContains(t, err, "has 40 left")
	}
	_, err = pay(rt, "40", "ok")
	require.NoError(t, err)
}

// unread is a journal that cannot be read when it says so.
type unread struct {
	journal.Journal
	now bool
}

func (u *unread) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if !u.now || !slices.Contains(q.Kinds, record.KindHeld) || q.Call != "" {
		return u.Journal.Entries(ctx, q)
	}
	return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, errors.New("the disk is gone")) }
}

// TestLedgerFailsClosed: a budget that cannot be looked at refuses the call.
func TestLedgerFailsClosed(t *testing.T) {
	j := &unread{Journal: journal.Memory()}
	s := newSession(t, place(t, hosttest.New(1), j))
	j.now = true
	out, err := begin(t, s).Invoke(t.Context(), "once", "")
	require.ErrorIs(t, err, tool.ErrDenied, out.Text)
	require.ErrorContains(t, err, "the budget could not be looked at")
	j.now = false
	_, err = begin(t, s).Invoke(t.Context(), "once", "")
	require.NoError(t, err)
}

// TestLimitOfARunningCall: a shared budget is held against a call when it begins; one that
// a rule gives only once the call runs cannot be ordered, and refuses.
func TestLimitOfARunningCall(t *testing.T) {
	writes := func(name string) tool.Tool {
		tl, err := tool.CreateWith(name, "Writes.", anyWrite(), func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			f, err := ctxfiles.Open(tc, "workspace")
			if err == nil {
				err = f.Write(ctx, in, []byte("x"), ctxfiles.WriteOptions{})
			}
			return "ok", err
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
		return mustTool(t, tl, err)
	}
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": shared}})
	rt := newRuntime(t, agent.Tools(writes("late"), writes("both")), agent.Root("workspace", t.TempDir()), agent.Policy(e))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(t.Context(), "late", "a")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Error.Why, `the budget "late" counts per principal, and the rule gave it only once the call ran`)
	out, err = tx.Invoke(t.Context(), "both", "a")
	require.NoError(t, err, out.Text)
	_, err = tx.Invoke(t.Context(), "both", "b")
	require.ErrorContains(t, err, "has 0 left")
}
