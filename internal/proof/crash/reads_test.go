package crash_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// callMethods are the ways to make one call in its own transaction.
var callMethods = map[string]func(ctx context.Context, s *agent.Session, name string, input any) (string, error){
	"begin, invoke, commit": func(ctx context.Context, s *agent.Session, name string, input any) (string, error) {
		return s.Update(ctx, func(tx *agent.Txn) error {
			_, err := tx.Invoke(ctx, name, input)
			return err
		})
	},
	"call": func(ctx context.Context, s *agent.Session, name string, input any) (string, error) {
		out, err := s.Call(ctx, name, input)
		return out.Txn, err
	},
}

// TestCommitsAreDurable checks that a power failure does not remove the commit
// of a transaction with effects after the client knows of it.
func TestCommitsAreDurable(t *testing.T) {
	calls := map[string]any{
		"file_write": tool.Args{"path": "a.txt", "content": "other"}, "count": "x", // files, and the state of a tool
		"book": "x", "fire": "x", "mail": "x", // effects outside, and held calls
	}
	for way, call := range callMethods {
		for name, input := range calls {
			t.Run(way+" "+name, func(t *testing.T) {
				w := newSimState()
				rt, ctx, err := w.process()
				require.NoError(t, err)
				s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
				require.NoError(t, err)
				txn, err := call(ctx, s, name, input)
				require.NoError(t, err)
				require.NoError(t, rt.Close())
				w.journal.Cut(w.journal.Pending())
				after, err := revert.Load(ctx, w.journal.Open(), txn)
				require.NoError(t, err)
				require.Equal(t, revert.TxnCommitted, after.State())
			})
		}
	}
}

// TestReadsWaitForNothing checks that a transaction that only reads is on the
// journal before the client knows its result, and waits for no disk. A power
// failure removes the end of the journal at any position. The rest recovers,
// has nothing to revert, and blocks nothing.
func TestReadsWaitForNothing(t *testing.T) {
	for way, call := range callMethods {
		for lost := 0; ; lost++ {
			w := newSimState()
			rt, ctx, err := w.process()
			require.NoError(t, err)
			s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
			require.NoError(t, err)
			barrier(t, w, rt)
			before := treeOf(w.disk.Files())
			txn, err := call(ctx, s, "think", "x")
			require.NoError(t, err)
			told, err := revert.Load(ctx, rt.Journal(), txn)
			require.NoError(t, err)
			require.Equal(t, revert.TxnCommitted, told.State())
			pending := w.journal.Pending()
			require.Positive(t, pending, "%s: it has waited", way)
			if way == "call" {
				require.Equal(t, 1, pending, "it came to the journal in one step")
			}
			if lost > pending {
				break
			}
			require.NoError(t, rt.Close())
			w.journal.Cut(lost)

			rt, ctx, err = w.process()
			require.NoError(t, err)
			found, err := rt.Recover(ctx)
			require.NoError(t, err)
			for _, open := range found.Abandoned {
				rep, err := rt.Revert(ctx, open, revert.Options{})
				require.NoError(t, err)
				require.Empty(t, rep.Items)
			}
			left, err := rt.Journal().Unfinished(ctx)
			require.NoError(t, err)
			require.Empty(t, left)
			require.Equal(t, before, treeOf(w.disk.Files()))
			require.NoError(t, rt.Close())
		}
	}
}

// barrier makes the journal durable.
func barrier(t *testing.T, w *simState, rt *agent.Runtime) {
	t.Helper()
	require.NoError(t, rt.Journal().Append(t.Context(), journal.Batch{Durable: true}))
	require.Zero(t, w.journal.Pending())
}

// TestReadThatAddsALabel checks that the label is durable, names a
// transaction on the journal, and survives a power failure at any later time.
func TestReadThatAddsALabel(t *testing.T) {
	w := newSimState()
	rt, ctx, err := w.process(agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Labels: []string{"seen"}, Reasons: []perm.Reason{{Text: "so it is"}}}), nil
	})))
	require.NoError(t, err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	require.NoError(t, err)
	out, err := s.Call(ctx, "think", "x")
	require.NoError(t, err)
	require.NoError(t, rt.Close())
	w.journal.Cut(w.journal.Pending())
	j := w.journal.Open()
	_, err = revert.Load(ctx, j, out.Txn)
	require.NoError(t, err)
	n := 0
	for _, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindLabelled}}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n)
}

// TestReadsSpendDurably checks a call that only reads and adds to a
// counter, uses an approval, or uses one of the calls of a grant. No power
// failure refunds that.
func TestReadsSpendDurably(t *testing.T) {
	asks := agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "is it worth it?"}}}), nil
	}))
	yes := agent.Approver(ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Approve("kim"), nil
	}))
	search := made(tool.FromSpec(tool.Spec{
		Name: "search", Input: []byte(`{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"]}`), Counters: map[string]string{"spent": "cents"},
		EffectClass: effect.Pure,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("found"), nil
		},
	}))
	for name, tt := range map[string]struct {
		tool  string
		input any
		opts  []agent.Option
		grant []agent.SessionOption
	}{
		"a sum":     {"search", tool.Args{"cents": 7}, []agent.Option{agent.Tools(search)}, nil},
		"an answer": {"think", "x", []agent.Option{asks, yes}, nil},
		"a use":     {"think", "x", nil, []agent.SessionOption{agent.MaxUses(2)}},
	} {
		for way, call := range callMethods {
			t.Run(name+" "+way, func(t *testing.T) {
				w := newSimState()
				rt, ctx, err := w.process(tt.opts...)
				require.NoError(t, err)
				s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, tt.grant...)
				require.NoError(t, err)
				_, err = call(ctx, s, tt.tool, tt.input)
				require.NoError(t, err)
				require.Zero(t, w.journal.Pending())
				require.NoError(t, rt.Close())
			})
		}
	}
}
