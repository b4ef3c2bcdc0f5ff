package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// oneLook lets everything run, and asks once at the commit.
const oneLook = `package remit

allow contains "effects run unasked" if input.call.effect_class != "deferrable"

hold contains "mail goes out at the end" if input.call.effect_class == "deferrable"

ask_commit contains "one look at the end" if count(input.txn.effects) > 0

deny_commit contains "secrets stay" if {
	some e in input.txn.effects
	e.resource.name == "secret"
}
`

// gatedRuntime is a runtime over a folder with two files, whose policy decides
// commits.
func gatedRuntime(t *testing.T, policy string, opts ...agent.Option) (rt *agent.Runtime, dir string) {
	t.Helper()
	dir = workspaceOf(t, map[string]string{"a": "one\n", "b": "two\n"})
	all := []agent.Option{
		agent.Tools(builtin.Files()...), agent.Root("workspace", dir),
		agent.Policy(mustLoad(t, rego.Options{Modules: map[string]string{"p.rego": policy}})),
	}
	return newRuntime(t, append(all, opts...)...), dir
}

func workspaceOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "absent"
	}
	require.NoError(t, err)
	return string(text)
}

// commitWaits commits, and returns the error of a commit that waits.
func commitWaits(t *testing.T, tx *agent.Txn) *agent.CommitError {
	t.Helper()
	var gate *agent.CommitError
	err := tx.Commit(context.Background())
	require.ErrorAs(t, err, &gate)
	require.ErrorIs(t, err, tool.ErrPending)
	require.NotErrorIs(t, err, tool.ErrDenied)
	require.NotContains(t, err.Error(), "remit approve")
	require.NotEmpty(t, gate.Request)
	return gate
}

func approveCommit(t *testing.T, rt *agent.Runtime, gate *agent.CommitError) {
	t.Helper()
	require.NoError(t, rt.Answer(context.Background(), agent.Answer{Txn: gate.Txn, Approved: true, By: "boss", RequestDigest: gate.Request}))
}

func kindsOf(t *testing.T, rt *agent.Runtime, txn string, kinds ...record.Kind) (list []record.Kind) {
	t.Helper()
	for e, err := range rt.Journal().Entries(context.Background(), journal.Query{Txn: txn, Kinds: kinds}) {
		require.NoError(t, err)
		list = append(list, e.Header.Kind)
	}
	return list
}

var commitKinds = []record.Kind{record.KindCommitDecided, record.KindAnswered, record.KindCommitting, record.KindCommitted, record.KindAborting, record.KindAborted}

// TestCommitWithoutRulesAboutIt is not decided, whatever the policy says about calls.
func TestCommitWithoutRulesAboutIt(t *testing.T) {
	rt, dir := gatedRuntime(t, "package remit\n\nallow contains \"files\" if input.access.resource.kind == \"file\"\n\ndeny contains \"undeclared\" if not input.call.declared\n")
	tx := begin(t, newSession(t, rt))
	saves(t, tx, "a", "changed\n")
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, "changed\n", contentOf(t, dir, "a"))
	require.Equal(t, []record.Kind{record.KindCommitted}, kindsOf(t, rt, tx.ID(), commitKinds...))
}

// TestCommitWaits asks once for three calls, and commits after the answer.
func TestCommitWaits(t *testing.T) {
	var told []ctxperm.ApprovalRequest
	rt, dir := gatedRuntime(t, oneLook, agent.OnWaiting(func(a ctxperm.ApprovalRequest) { told = append(told, a) }))
	tx := begin(t, newSession(t, rt))
	for _, name := range []string{"a", "b", "c"} {
		saves(t, tx, name, "new\n")
	}
	gate := commitWaits(t, tx)
	require.Len(t, told, 1)
	require.Equal(t, perm.PurposeCommit, told[0].Purpose)
	require.Equal(t, gate.Request, told[0].Digest)
	require.Contains(t, gate.Error(), "one look at the end")

	again := commitWaits(t, tx) // asks nobody a second time
	require.Equal(t, gate.Request, again.Request)
	require.Len(t, told, 1)

	approveCommit(t, rt, gate)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, "new\n", contentOf(t, dir, "c"))
	require.Equal(t, []record.Kind{record.KindCommitDecided, record.KindAnswered, record.KindCommitDecided, record.KindCommitted}, kindsOf(t, rt, tx.ID(), commitKinds...))
	last := loadTxn(t, rt, tx.ID()).Commits[1].Decided
	require.Equal(t, "boss", last.Answer.By)
	require.True(t, last.Permits())
	var saw perm.TxnFacts
	require.NoError(t, canon.Decode(last.Txn, &saw))
	require.Len(t, saw.Effects, 3)
	require.Equal(t, &perm.EffectTotals{Effects: 3, Reversible: 3}, saw.Totals)
	fsckClean(t, rt)
}

// TestCommitAnswers checks which answers count.
func TestCommitAnswers(t *testing.T) {
	rt, dir := gatedRuntime(t, oneLook)
	tx := begin(t, newSession(t, rt))
	ctx := t.Context()
	require.ErrorIs(t, rt.Answer(ctx, agent.Answer{Txn: tx.ID(), By: "boss"}), tool.ErrInvalid) // nothing waits
	saves(t, tx, "a", "new\n")
	gate := commitWaits(t, tx)
	for name, a := range map[string]agent.Answer{
		"the requester":    {Approved: true, By: "coder", RequestDigest: gate.Request},
		"no name":          {Approved: true, RequestDigest: gate.Request},
		"no request":       {Approved: true, By: "boss"},
		"another request":  {Approved: true, By: "boss", RequestDigest: "sha256:00"},
		"a call too":       {Call: "c_1", Approved: true, By: "boss", RequestDigest: gate.Request},
		"a rejected other": {By: "boss", RequestDigest: "sha256:00"},
	} {
		a.Txn = tx.ID()
		require.Error(t, rt.Answer(ctx, a), name)
	}
	_ = commitWaits(t, tx)

	saves(t, tx, "b", "new\n") // what was asked about has changed
	require.ErrorContains(t, rt.Answer(ctx, agent.Answer{Txn: tx.ID(), Approved: true, By: "boss", RequestDigest: gate.Request}), "has changed since")
	changed := commitWaits(t, tx)
	require.NotEqual(t, gate.Request, changed.Request)
	require.Error(t, rt.Answer(ctx, agent.Answer{Txn: tx.ID(), Approved: true, By: "boss", RequestDigest: gate.Request}))
	approveCommit(t, rt, changed)
	saves(t, tx, "c", "new\n") // after the approval
	third := commitWaits(t, tx)
	require.NotEqual(t, changed.Request, third.Request)
	approveCommit(t, rt, third)
	require.NoError(t, tx.Commit(ctx))
	require.Error(t, rt.Answer(ctx, agent.Answer{Txn: tx.ID(), By: "boss"}))
	require.Equal(t, "new\n", contentOf(t, dir, "c"))
	fsckClean(t, rt)
}

// TestCommitDenied reverts the transaction, and says why.
func TestCommitDenied(t *testing.T) {
	rt, dir := gatedRuntime(t, oneLook)
	tx := begin(t, newSession(t, rt))
	before := tree(t, dir)
	saves(t, tx, "a", "new\n")
	saves(t, tx, "secret", "key\n")
	var gate *agent.CommitError
	err := tx.Commit(t.Context())
	require.ErrorAs(t, err, &gate)
	require.ErrorIs(t, err, tool.ErrDenied)
	require.NotErrorIs(t, err, agent.ErrPartialRevert)
	require.ErrorContains(t, err, "secrets stay")
	require.True(t, gate.Report.Complete())
	require.Equal(t, before, tree(t, dir))
	require.Equal(t, revert.TxnReverted, loadTxn(t, rt, tx.ID()).State())
	require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrTxnEnded)
	require.Equal(t, []record.Kind{record.KindCommitDecided, record.KindAborting, record.KindAborted}, kindsOf(t, rt, tx.ID(), commitKinds...))
	fsckClean(t, rt)
}

// TestCommitRejected reverts the transaction, except what another process
// changed after the request: that stays, and is reported.
func TestCommitRejected(t *testing.T) {
	rt, dir := gatedRuntime(t, oneLook)
	tx := begin(t, newSession(t, rt))
	saves(t, tx, "a", "new\n")
	saves(t, tx, "c", "new\n")
	gate := commitWaits(t, tx)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c"), []byte("theirs\n"), 0o600))
	require.NoError(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), By: "boss", Why: "wrong file"}))
	require.Error(t, rt.Answer(t.Context(), agent.Answer{Txn: tx.ID(), Approved: true, By: "boss", RequestDigest: gate.Request})) // a rejection stays
	err := tx.Commit(t.Context())
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.ErrorContains(t, err, "refused by boss: wrong file")
	require.ErrorContains(t, err, "file://workspace/c (conflict)")
	require.Equal(t, "one\n", contentOf(t, dir, "a"))
	require.Equal(t, "theirs\n", contentOf(t, dir, "c"))
	require.Equal(t, revert.TxnRevertedPartial, loadTxn(t, rt, tx.ID()).State())
	fsckClean(t, rt)
}

// TestForeignEditBeforeTheApproval stays after the commit: an approval is about
// what the transaction did.
func TestForeignEditBeforeTheApproval(t *testing.T) {
	rt, dir := gatedRuntime(t, oneLook)
	tx := begin(t, newSession(t, rt))
	saves(t, tx, "a", "new\n")
	gate := commitWaits(t, tx)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("theirs\n"), 0o600))
	approveCommit(t, rt, gate)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, "theirs\n", contentOf(t, dir, "a"))
}

// TestCommitAsksTheApprover shows the difference of the whole transaction once.
func TestCommitAsksTheApprover(t *testing.T) {
	for name, c := range map[string]struct {
		answer ctxperm.Answer
		err    error
		want   error
	}{
		"yes":            {ctxperm.Approve("boss"), nil, nil},
		"no":             {ctxperm.Deny("boss", "no"), nil, tool.ErrDenied},
		"the zero value": {ctxperm.Answer{}, nil, tool.ErrDenied},
		"an error":       {ctxperm.Answer{}, errors.New("away"), tool.ErrPending},
		"the requester":  {ctxperm.Approve("coder"), nil, tool.ErrPending},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []ctxperm.ApprovalRequest
			rt, dir := gatedRuntime(t, oneLook, agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
				asked = append(asked, a)
				return c.answer, c.err
			})))
			s := newSession(t, rt)
			tx := begin(t, s)
			saves(t, tx, "a", "new\n")
			saves(t, tx, "c", "made\n")
			err := tx.Commit(t.Context())
			require.Len(t, asked, 1)
			require.Equal(t, perm.PurposeCommit, asked[0].Purpose)
			require.Equal(t, "one look at the end", asked[0].Reasons[0].Text)
			require.Contains(t, asked[0].Preview, "-one\n+new\n")
			require.Contains(t, asked[0].Preview, "+made\n")
			if c.want == nil {
				require.NoError(t, err)
				require.Equal(t, "new\n", contentOf(t, dir, "a"))
				return
			}
			require.ErrorIs(t, err, c.want)
			if errors.Is(c.want, tool.ErrDenied) {
				require.Equal(t, "one\n", contentOf(t, dir, "a"))
				require.Equal(t, "absent", contentOf(t, dir, "c"))
			}
			fsckClean(t, rt)
		})
	}
}
