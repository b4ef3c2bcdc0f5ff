package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// judged is a runtime with one call of one session, whose transaction has ended.
func judged(t *testing.T) (*agent.Runtime, *agent.Session, tool.Outcome, tool.Tool) {
	up, err := tool.Create("upper", "Upper-cases.", func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	up = mustTool(t, up, err)
	rt := newRuntime(t, agent.Policy(allowAll()), agent.Tools(up))
	s := newSession(t, rt)
	tx := begin(t, s)
	out, err := tx.Invoke(t.Context(), "upper", "x")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	return rt, s, out, up
}

// TestFeedback checks that the record of a call holds its feedback. Each entry
// names the declaration that made the call, and the author.
func TestFeedback(t *testing.T) {
	ctx := t.Context()
	rt, s, out, up := judged(t)
	said, err := rt.Feedback(ctx, provenance.Feedback{Call: out.Call, Verdict: provenance.Wrong, Note: "not \xff this", By: "kim", BySelf: true})
	require.NoError(t, err)
	want := provenance.Feedback{Tool: "upper", Digest: up.Digest(), Call: out.Call, Verdict: provenance.Wrong, Note: "not %FF this", By: "kim"}
	require.Equal(t, want, said)
	own, err := s.Feedback(ctx, out.Call, provenance.Good, "")
	require.NoError(t, err)
	require.Equal(t, s.Principal().ID, own.By)
	require.True(t, own.BySelf)
	again, err := rt.Feedback(ctx, provenance.Feedback{Tool: "upper", Digest: up.Digest(), Call: out.Call, Verdict: provenance.Good, By: s.Principal().ID})
	require.NoError(t, err)
	require.True(t, again.BySelf, "also where the program says it")
	_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
	require.NoError(t, err)
	require.Equal(t, []provenance.Feedback{want, own, again}, c.Feedback)
	require.Equal(t, revert.PhaseDone, c.Phase)
	_, err = revert.Fsck(ctx, rt.Journal(), revert.FsckOptions{})
	require.NoError(t, err)
}

func TestFeedbackThatIsRefused(t *testing.T) {
	ctx := t.Context()
	rt, s, out, _ := judged(t)
	good := provenance.Feedback{Call: out.Call, Verdict: provenance.Good, By: "kim"}
	for name, tt := range map[string]struct {
		change func(*provenance.Feedback)
		is     error
		says   string
	}{
		"a call that there is not": {func(f *provenance.Feedback) { f.Call = "c_none" }, journal.ErrNotFound, "c_none"},
		"no call":                  {func(f *provenance.Feedback) { f.Call = "" }, journal.ErrNotFound, "empty call id"},
		"a transaction":            {func(f *provenance.Feedback) { f.Call = out.Txn }, journal.ErrNotFound, out.Txn},
		"no verdict":               {func(f *provenance.Feedback) { f.Verdict = "" }, tool.ErrInvalid, `"" is no rating; valid are good, bad, wrong, unsafe`},
		"another verdict":          {func(f *provenance.Feedback) { f.Verdict = "Good" }, tool.ErrInvalid, `"Good" is no rating`},
		"nobody":                   {func(f *provenance.Feedback) { f.By = "" }, tool.ErrInvalid, "who gives it"},
		"a novel":                  {func(f *provenance.Feedback) { f.Note = strings.Repeat("x", 4097) }, tool.ErrInvalid, "4097 bytes"},
		"of another tool":          {func(f *provenance.Feedback) { f.Tool = "lower" }, tool.ErrInvalid, "another tool"},
		"of another declaration":   {func(f *provenance.Feedback) { f.Digest = "sha256:0" }, tool.ErrInvalid, "another declaration"},
	} {
		t.Run(name, func(t *testing.T) {
			f := good
			tt.change(&f)
			_, err := rt.Feedback(ctx, f)
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.says)
		})
	}
	other, err := rt.Session(ctx, perm.Principal{ID: "other"})
	require.NoError(t, err)
	_, err = other.Feedback(ctx, out.Call, provenance.Bad, "")
	require.ErrorIs(t, err, journal.ErrNotFound, "it is of another session")
	_, err = s.Feedback(ctx, "c_none", provenance.Bad, "")
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = rt.Erase(ctx, out.Call, "kim", "a name was in it")
	require.NoError(t, err)
	_, err = rt.Feedback(ctx, good)
	require.ErrorIs(t, err, record.ErrErased)
}

// TestFeedbackOfACallThatNamedNoTool: the record has the name that was asked for.
func TestFeedbackOfACallThatNamedNoTool(t *testing.T) {
	rt, s, _, _ := judged(t)
	tx := begin(t, s)
	out, err := tx.Invoke(t.Context(), "uper", "x")
	require.ErrorIs(t, err, tool.ErrInvalid)
	said, err := rt.Feedback(t.Context(), provenance.Feedback{Call: out.Call, Verdict: provenance.Bad, By: "kim"})
	require.NoError(t, err)
	require.Equal(t, "uper", said.Tool)
	require.Empty(t, said.Digest)
}

// TestErasedFeedback: the note goes with the records of its call.
func TestErasedFeedback(t *testing.T) {
	ctx := t.Context()
	rt, s, out, _ := judged(t)
	_, err := s.Feedback(ctx, out.Call, provenance.Unsafe, "it names a person")
	require.NoError(t, err)
	_, err = rt.Erase(ctx, out.Call, "kim", "a name was in it")
	require.NoError(t, err)
	_, c, err := revert.LoadCall(ctx, rt.Journal(), out.Call)
	require.NoError(t, err)
	require.Empty(t, c.Feedback)
	for e, err := range rt.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindFeedback}}) {
		require.NoError(t, err)
		require.NotEmpty(t, e.Erased)
	}
	_, err = revert.Fsck(ctx, rt.Journal(), revert.FsckOptions{})
	require.NoError(t, err)
}
