package revert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// TestFsckWithReadErrors checks that fsck reports the defects of a journal
// even if one of its operations fails.
func TestFsckWithReadErrors(t *testing.T) {
	for name, spoil := range map[string]func(l *testEnv){
		"no beginning": func(l *testEnv) {
			rec := revert.NewRecorder(l.journal, l.host, "s_1")
			l.must(rec, revert.Write{Records: []revert.CallRecord{{Txn: "t_lost", Call: "c_1", Body: &record.Invalid{Why: "x"}}}})
		},
		"held for ended": func(l *testEnv) { l.must(l.txn(), revert.Write{End: true}) },
		"held for open":  func(l *testEnv) { l.line(l.txn(), "", &record.Committed{}) },
		"works on what is not there": func(l *testEnv) {
			rec := revert.NewRecorder(l.journal, l.host, "s_1").In("t_undo")
			own := journal.Ownership{Txn: rec.Txn(), Owner: l.journal.Owner()}
			l.must(rec, revert.Write{Take: journal.OwnerChange{To: own}, Records: []revert.CallRecord{{Body: &record.Begun{Owner: own.Owner, Reverts: "t_lost"}}}})
		},
		"content that is not there": func(l *testEnv) {
			rec := l.txn()
			lost := effect.BlobRef{Digest: "sha256:" + strings.Repeat("a", 64), Size: 3}
			id := l.start(rec, handled())
			l.line(rec, id, &record.Changed{Change: effect.Change{N: 1, Scheme: "kv", Resource: "a", Pre: "v:1", Blobs: []effect.BlobRef{lost}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestEnv(t)
			l.worked()
			spoil(l)
			l.faults.log = nil
			_, err := revert.Fsck(t.Context(), l.journal, revert.FsckOptions{})
			require.ErrorIs(t, err, record.ErrDamaged)
			for n := range l.faults.log {
				for _, how := range []fault{{}, {lost: true}} {
					*l.faults = faults{left: n, how: how}
					report, err := revert.Fsck(t.Context(), l.journal, revert.FsckOptions{})
					require.Error(t, err, "operation %d (%s), %+v: %+v", n, l.faults.at, how, report)
				}
			}
		})
	}
}
