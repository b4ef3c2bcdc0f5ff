package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// TestRecordedCommitsAreThose makes random transactions, and reads back from the journal alone what a policy was
// asked about each commit. Without the records of these decisions, the journal says the same of the commits.
func TestRecordedCommitsAreThose(t *testing.T) {
	for seed := range uint64(statcheck.Size(6, 100)) {
		r, ctx := rand.New(rand.NewPCG(seed, 5)), context.Background()
		var seen []perm.Request
		engine := gateEngine{seen: &seen, commit: func(perm.Request) (perm.Effect, error) { return perm.Allow, nil }}
		page := scriptedTool(t, "page", &provenance.Content{}, effect.Pure, func() (tool.Result, error) { return tool.Text("hello"), nil })
		rt, _ := gatedRuntime(t, oneLook, agent.Policy(engine), agent.Tools(page))
		s := newSession(t, rt)
		gone := map[string]bool{}
		for range 12 {
			tx := begin(t, s)
			into := tx
			for range r.IntN(6) {
				name := []string{"a", "b", "c/d"}[r.IntN(3)]
				switch r.IntN(6) {
				case 0:
					_, _ = into.Invoke(ctx, "file_delete", tool.Args{"path": name})
				case 1:
					_, _ = into.Invoke(ctx, "page", "")
				case 2:
					require.NoError(t, into.Savepoint(ctx, "s"))
					_, _ = into.Invoke(ctx, "file_write", tool.Args{"path": name, "content": "gone", "parents": true})
					_, err := into.RevertTo(ctx, "s")
					require.NoError(t, err)
				case 3:
					in, err := into.BeginNested(ctx, s)
					require.NoError(t, err)
					_, _ = in.Invoke(ctx, "file_write", tool.Args{"path": name, "content": "nested", "parents": true})
					require.NoError(t, in.Commit(ctx))
				default:
					_, _ = into.Invoke(ctx, "file_write", tool.Args{"path": name, "content": fmt.Sprint(r.IntN(3)), "parents": true})
				}
			}
			require.NoError(t, tx.Commit(ctx))
			if r.IntN(4) == 0 {
				_, err := s.Revert(ctx, tx.ID(), revert.Options{})
				require.NoError(t, err)
				gone[tx.ID()] = true
			}
		}
		same := func(got []agent.RecordedDecision, err error, checked func(string) bool) {
			require.NoError(t, err)
			at := 0
			for _, want := range seen {
				if !checked(want.Txn.ID) {
					continue
				}
				for at < len(got) && !checked(got[at].Txn) {
					require.Contains(t, got[at].Unknown, "txn.effects")
					at++
				}
				require.Less(t, at, len(got))
				d := got[at]
				at++
				require.Equal(t, []string{"session.tools", "session.recent", "session.history"}, d.Unknown)
				require.Equal(t, "allow", d.Decision.Effect)
				have := d.Requests[0]
				want.Session.Tools, want.Session.Recent, want.Session.Past, want.Time = have.Session.Tools, have.Session.Recent, nil, have.Time
				require.Equal(t, want.Txn, have.Txn, "seed %d", seed)
				require.Equal(t, asJSON(want), asJSON(have), "seed %d", seed)
			}
			require.False(t, slices.ContainsFunc(got[at:], func(d agent.RecordedDecision) bool { return checked(d.Txn) }))
		}
		got, err := agent.RecordedCommits(ctx, rt.Journal(), s.ID(), true)
		same(got, err, func(string) bool { return true })
		got, err = agent.CommitsAsIfUnasked(ctx, rt.Journal(), s.ID())
		same(got, err, func(txn string) bool { return !gone[txn] })
		require.NotEmpty(t, seen)
	}
}

// TestRecordedCommitsUnasked: a commit without a decision is returned only if it is asked for.
func TestRecordedCommitsUnasked(t *testing.T) {
	rt, _ := gatedRuntime(t, "package remit\n\nallow contains \"all\" if true\n")
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "a", "new\n")
	require.NoError(t, tx.Commit(t.Context()))
	got, err := agent.RecordedCommits(t.Context(), rt.Journal(), s.ID(), false)
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = agent.RecordedCommits(t.Context(), rt.Journal(), s.ID(), true)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, tx.ID(), got[0].Txn)
	require.Equal(t, 1, got[0].Requests[0].Txn.Totals.Effects)
	engine := mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": oneLook}})
	d, err := engine.Decide(t.Context(), got[0].Requests[0])
	require.NoError(t, err)
	require.Equal(t, perm.Ask, d.Effect())
}

// TestRecordedCommitsAfterAResolution: what a person decided later about a call is not what a policy would have seen.
func TestRecordedCommitsAfterAResolution(t *testing.T) {
	lost := scriptedTool(t, "lost", nil, effect.Pivot, func() (tool.Result, error) { return tool.Result{}, errUse })
	rt, _ := gatedRuntime(t, "package remit\n\nallow contains \"all\" if true\n", agent.Tools(lost))
	s := newSession(t, rt)
	tx := begin(t, s)
	saves(t, tx, "a", "new\n")
	out, err := tx.Invoke(t.Context(), "lost", "")
	require.ErrorIs(t, err, tool.ErrUnknown)
	require.NoError(t, tx.Commit(t.Context()))
	commits := func() agent.RecordedDecision {
		got, err := agent.RecordedCommits(t.Context(), rt.Journal(), s.ID(), true)
		require.NoError(t, err)
		require.Len(t, got, 1)
		return got[0]
	}
	require.NotContains(t, commits().Unknown, "txn.totals")
	require.Equal(t, 1, commits().Requests[0].Txn.Totals.Unknown)
	require.NoError(t, rt.ResolveUnknown(t.Context(), out.Call, record.Decided{Applied: false, By: "kim", Why: "looked"}))
	require.Contains(t, commits().Unknown, "txn.totals")
}

// TestRecordedCommitsThatWereErased: an erased decision is no permission.
func TestRecordedCommitsThatWereErased(t *testing.T) {
	rt, _ := gatedRuntime(t, oneLook)
	s := newSession(t, rt)
	tx := begin(t, s)
	out := saves(t, tx, "a", "new\n")
	approveCommit(t, rt, commitWaits(t, tx))
	require.NoError(t, tx.Commit(t.Context()))
	_, err := rt.Erase(t.Context(), out.Call, "kim", "secret")
	require.NoError(t, err)
	got, err := agent.RecordedCommits(t.Context(), rt.Journal(), s.ID(), true)
	require.NoError(t, err)
	require.Len(t, got, 2, "it waited, and was then permitted")
	for _, d := range got {
		require.Equal(t, tx.ID(), d.Txn)
		require.Empty(t, d.Requests)
		require.Empty(t, d.Decision.Effect)
	}
}
