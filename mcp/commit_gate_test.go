package mcp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

const gateRules = `package remit

allow contains "effects run unasked"

ask_commit contains "one look at the commit" if count(input.txn.effects) > 0

deny_commit contains "no drafts" if {
	some effect in input.txn.effects
	effect.resource.ext == ".draft"
}
`

// TestCommitGate: a call is no success whose commit was denied, and one whose
// commit waits can be committed once a person has answered.
func TestCommitGate(t *testing.T) {
	engine, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": gateRules}})
	require.NoError(t, err)
	routeByRevision(t, func(t *testing.T, revision string) {
		h := newServerSetup(t, mcp.Options{}, agent.Policy(engine), agent.SuspendForApproval())
		cs := h.client(revision, nil)
		r := h.call(cs, "file_write", write("x.draft", "1"))
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), "no drafts")
		require.Equal(t, "(none)", h.file("x.draft"))

		r = h.call(cs, "file_write", write("a.txt", "1")) // in a transaction of its own
		require.Contains(t, textOf(t, r), "waits for approval: one look at the commit")
		require.NotContains(t, textOf(t, r), "remit approve")
		alone, _ := r.Meta["remit.dev/txn"].(string)
		r = h.call(cs, "txn_commit", tool.Args{"txn": alone})
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), "waits for approval")
		h.answerCommit(alone, true)
		r = h.call(cs, "txn_commit", tool.Args{"txn": alone})
		require.False(t, r.IsError, textOf(t, r))
		require.Equal(t, "1", h.file("a.txt"))

		txn := decodeResult[txnResult](t, h.call(cs, "txn_begin", nil).StructuredContent).Txn
		h.call(cs, "file_write", write("b.txt", "1"), "remit.dev/txn", txn)
		require.True(t, h.call(cs, "txn_commit", tool.Args{"txn": txn}).IsError)
		h.answerCommit(txn, false)
		r = h.call(cs, "txn_commit", tool.Args{"txn": txn})
		require.True(t, r.IsError)
		require.Contains(t, textOf(t, r), "refused by boss")
		require.Equal(t, "(none)", h.file("b.txt"))
	})
}

func (h *serverSetup) answerCommit(txn string, approved bool) {
	h.t.Helper()
	now, err := revert.Load(h.t.Context(), h.rt.Journal(), txn)
	require.NoError(h.t, err)
	decision, waits := now.WaitingCommit().Get()
	require.True(h.t, waits)
	require.NoError(h.t, h.rt.Answer(h.t.Context(), agent.Answer{Txn: txn, Approved: approved, By: "boss", RequestDigest: decision.Decided.Digest}))
}
