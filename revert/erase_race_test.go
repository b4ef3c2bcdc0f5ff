package revert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestErasureRaces runs a second operation between the read and the write
// of an erasure: it erases, prunes, reverts, redoes or judges the same call.
// The journal stays readable, and a second erasure leaves nothing of the call.
func TestErasureRaces(t *testing.T) {
	acts := map[string]func(p *process, txn, call string) error{
		"erase": func(p *process, _, call string) error {
			_, err := p.reverter.Erase(t.Context(), call, record.Erased{By: "kim", Why: "x"})
			return err
		},
		"prune": func(p *process, _, _ string) error {
			_, err := p.reverter.Prune(t.Context(), revert.Retention{})
			return err
		},
		"revert": func(p *process, txn, _ string) error {
			_, err := p.reverter.Revert(t.Context(), txn, revert.Options{})
			return err
		},
		"redo": func(p *process, txn, _ string) error {
			_, err := p.reverter.Redo(t.Context(), txn, "kim")
			return err
		},
	}
	acts["feedback"] = func(p *process, txn, call string) error {
		rec := revert.NewRecorder(p.journal, p.host, "s_1")
		said := &record.Feedback{Feedback: provenance.Feedback{Tool: "put", Call: call, Verdict: provenance.Bad, Note: "a name", By: "kim"}}
		return rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Txn: txn, Call: call, Body: said}}, Durable: true})
	}
	for _, first := range []string{"erase", "prune"} {
		for other := range acts {
			for undone, name := range map[bool]string{true: "that was reverted", false: "as it was left"} {
				t.Run(first+" beside "+other+" of one "+name, func(t *testing.T) {
					store := journal.SharedMemory()
					p, q := newProcess(store, &kvStore{before()}, 1), newProcess(store, nil, 2)
					q.store = p.store
					q.reverter = &revert.Reverter{Journal: q.journal, Host: q.host, EnvironmentFor: p.reverter.EnvironmentFor}
					txn := p.one(t, "a", 1)
					if undone {
						require.NoError(t, acts["revert"](p, txn, ""))
					}
					got, err := revert.Load(t.Context(), p.journal, txn)
					require.NoError(t, err)
					call := got.Calls[0].Ref.Call
					met := false
					p.host.OnPoint = func(point string) error {
						if strings.HasPrefix(point, "journal.append.erased") && !met {
							met = true
							require.NoError(t, acts[other](q, txn, call))
						}
						return nil
					}
					_ = acts[first](p, txn, call) // may need a repetition
					require.True(t, met)
					p.host.OnPoint = nil
					require.NoError(t, acts["erase"](p, txn, call))
					found, err := revert.Fsck(t.Context(), p.journal, revert.FsckOptions{})
					require.NoError(t, err, "%+v", found)
					for e, err := range p.journal.Entries(t.Context(), journal.Query{}) {
						require.NoError(t, err)
						kind := e.Header.Kind
						require.True(t, !kind.Erasable() || e.Erased != "", "%s of %s is there", kind, e.Header.Call)
					}
					got, err = revert.Load(t.Context(), p.journal, txn)
					require.NoError(t, err)
					if p.store.values["a"] != before()["a"] {
						require.NotEqual(t, revert.TxnReverted, got.State())
					}
				})
			}
		}
	}
}

// TestFeedbackAfterAnErasure adds feedback to a call after it was erased, from a
// process that read it before. A second erasure destroys the feedback too.
func TestFeedbackAfterAnErasure(t *testing.T) {
	p := newProcess(journal.SharedMemory(), &kvStore{before()}, 1)
	txn := p.one(t, "a", 1)
	got, err := revert.Load(t.Context(), p.journal, txn)
	require.NoError(t, err)
	call := got.Calls[0].Ref.Call
	erase := func(by string) revert.EraseReport {
		done, err := p.reverter.Erase(t.Context(), call, record.Erased{By: by, Why: "x"})
		require.NoError(t, err)
		return done
	}
	require.Equal(t, 1, erase("kim").Records)
	require.Zero(t, erase("ada").Records)
	said := &record.Feedback{Feedback: provenance.Feedback{Tool: "put", Call: call, Verdict: provenance.Bad, Note: "a name \xff", By: "kim"}}
	rec := revert.NewRecorder(p.journal, p.host, "s_1")
	require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Txn: txn, Call: call, Body: said}}, Durable: true}))
	_, c, err := revert.LoadCall(t.Context(), p.journal, call)
	require.NoError(t, err)
	require.Equal(t, "a name %FF", c.Feedback[0].Note)
	require.Equal(t, revert.PhaseErased, c.Phase)
	left := c.Erased.Left
	require.Equal(t, 1, erase("ada").Records)
	_, c, err = revert.LoadCall(t.Context(), p.journal, call)
	require.NoError(t, err)
	require.Empty(t, c.Feedback)
	require.Equal(t, left, c.Erased.Left)
	require.Zero(t, erase("ada").Records)
	found, err := revert.Fsck(t.Context(), p.journal, revert.FsckOptions{})
	require.NoError(t, err, "%+v", found)
}
