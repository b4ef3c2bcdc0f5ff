package hooks_test

import (
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
)

const gateRules = `package remit

ask_commit contains "one look at the end of the prompt" if count(input.txn.effects) > 0

deny_commit contains "no drafts" if {
	some effect in input.txn.effects
	effect.resource.ext == ".draft"
}
`

// waitsAtCommit returns the transaction whose commit waits, with its request.
func (d *project) waitsAtCommit() (txn, request string) {
	d.t.Helper()
	txn = d.last()
	now, err := revert.Load(d.t.Context(), d.journal, txn)
	require.NoError(d.t, err)
	decision, waits := now.WaitingCommit().Get()
	require.True(d.t, waits)
	return txn, decision.Decided.Digest
}

func (d *project) stateOf(txn string) revert.TxnState {
	d.t.Helper()
	now, err := revert.Load(d.t.Context(), d.journal, txn)
	require.NoError(d.t, err)
	return now.State()
}

// TestPromptWaitsAtItsCommit: the end of a prompt waits for the person, also
// after the resident process was killed, and the next event after the answer
// ends it.
func TestPromptWaitsAtItsCommit(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, approved := range []bool{true, false} {
			d := newProject(t, true, gateRules)
			c := d.unasked("s")
			c.says("write a")
			require.Equal(t, hooks.Allow, c.edits("Write", "a.txt", "a").before.Verdict)
			c.stops()
			txn, request := d.waitsAtCommit()
			c.says("write b")
			require.Equal(t, hooks.Allow, c.edits("Write", "b.txt", "b").before.Verdict)
			require.Equal(t, revert.TxnOpen, d.stateOf(txn))
			if killed {
				d.restarts()
			}
			require.NoError(t, d.rt.Answer(t.Context(), agent.Answer{Txn: txn, Approved: approved, By: "boss", RequestDigest: request}))
			if killed {
				d.restarts()
			}
			c.prompt++
			_, answer := c.event("UserPromptSubmit", map[string]any{"prompt": "go on"})
			if approved {
				require.Equal(t, revert.TxnCommitted, d.stateOf(txn))
				require.FileExists(t, filepath.Join(d.dir, "a.txt"))
			} else {
				require.Equal(t, revert.TxnReverted, d.stateOf(txn), "%+v", answer)
				require.NoFileExists(t, filepath.Join(d.dir, "a.txt"))
			}
		}
	}
}

// TestPromptDeniedAtItsCommit tells the client, and reverts the prompt.
func TestPromptDeniedAtItsCommit(t *testing.T) {
	d := newProject(t, true, gateRules)
	c := d.unasked("s")
	c.says("write a draft")
	require.Equal(t, hooks.Allow, c.edits("Write", "a.draft", "a").before.Verdict)
	_, answer := c.event("Stop", map[string]any{})
	require.Equal(t, hooks.Deny, answer.Verdict)
	require.Contains(t, answer.Reason, "no drafts")
	require.NotContains(t, answer.Reason, "remit approve")
	require.Equal(t, revert.TxnReverted, d.stateOf(d.last()))
	require.NoFileExists(t, filepath.Join(d.dir, "a.draft"))
}

// TestPromptOfAnotherPolicy: a commit that the policy asked about waits on under a policy that does not ask, and the
// next event after the answer ends it.
func TestPromptOfAnotherPolicy(t *testing.T) {
	d := newProject(t, true, gateRules)
	asking, err := rego.New(rego.Options{Sources: []rego.Source{{FS: policies.CodingAgent(), NoTests: true}, {FS: fstest.MapFS{"own.rego": {Data: []byte(gateRules)}}}}, Timeout: time.Minute})
	require.NoError(t, err)
	plain, err := rego.New(rego.Options{Sources: []rego.Source{{FS: policies.CodingAgent(), NoTests: true}}, Timeout: time.Minute})
	require.NoError(t, err)
	live := rego.NewSwappableEngine(asking)
	d.engine = live
	d.restarts()
	c := d.unasked("s")
	c.says("write a")
	require.Equal(t, hooks.Allow, c.edits("Write", "a.txt", "a").before.Verdict)
	c.stops()
	txn, request := d.waitsAtCommit()
	live.Swap(plain)
	for range 2 {
		c.prompt++
		_, answer := c.event("UserPromptSubmit", map[string]any{"prompt": "go on"})
		require.Contains(t, answer.Reason, "another policy asked about the commit")
		require.Equal(t, revert.TxnOpen, d.stateOf(txn))
	}
	require.NoError(t, d.rt.Answer(t.Context(), agent.Answer{Txn: txn, Approved: true, By: "boss", RequestDigest: request}))
	c.prompt++
	c.event("UserPromptSubmit", map[string]any{"prompt": "go on"})
	require.Equal(t, revert.TxnCommitted, d.stateOf(txn))
}
