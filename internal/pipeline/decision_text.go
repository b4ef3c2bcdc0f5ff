package pipeline

import (
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// encodedDecision is a decision and its canonical form. It never changes.
type encodedDecision struct {
	decision perm.DecisionRecord
	text     []byte
}

func (e *encodedDecision) of(d perm.DecisionRecord) bool {
	return e != nil && e.decision.Effect == d.Effect && e.decision.Revision == d.Revision &&
		slices.Equal(e.decision.Reasons, d.Reasons) && slices.Equal(e.decision.Hints, d.Hints) &&
		(e.decision.Reasons == nil) == (d.Reasons == nil) && sameRemember(e.decision.Remember, d.Remember)
}

func sameRemember(a, b *perm.Remember) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Scope == b.Scope && slices.Equal(a.Keys, b.Keys)
}

// decisionText returns the canonical form of a decision, for records. Callers
// must not change d or the result: most calls of a transaction get the same
// decision, so the last one is remembered.
func (l *Pipeline) decisionText(d perm.DecisionRecord) ([]byte, error) {
	if last := l.lastDecision.Load(); last.of(d) {
		return last.text, nil
	}
	text, err := canon.Marshal(d)
	if err == nil {
		l.lastDecision.Store(&encodedDecision{d, text})
	}
	return text, err
}
