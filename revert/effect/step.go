package effect

// Step is one resource to be taken back: the planned outcome and, where
// something is to be done, the counter-change. A counter-change is a Change: its
// Pre is what is there now, its Post what will be there again.
type Step struct {
	Of     []int   `json:"of"`               // numbers of the changes it takes back
	Plan   Outcome `json:"plan"`             // restored: do Change; already, conflict, failed: nothing is done
	Change Change  `json:"change"`           // the counter-change; without effect unless Plan is restored
	Forced bool    `json:"forced,omitempty"` // what it displaces is somebody else's
	Why    string  `json:"why,omitempty"`
}

// Outcome is what became of taking one change back.
type Outcome string

// The outcomes of an undo. The empty outcome counts as UndoUnknown.
const (
	Restored Outcome = "restored" // the earlier version is there again
	Already  Outcome = "already"  // it was there before the undo began
	Conflict Outcome = "conflict" // somebody else's version is there; left alone
	Failed   Outcome = "failed"   // there was no way back, or it did not work
	Unknown  Outcome = "unknown"  // cannot be told
)

// Clean reports whether nothing of the effect is left.
func (o Outcome) Clean() bool { return o == Restored || o == Already }

// Result is what became of one resource.
type Result struct {
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	Now      Token   `json:"now,omitempty"`    // version there afterwards, where known
	Forced   bool    `json:"forced,omitempty"` // it displaced what somebody else had left, which is kept
	Why      string  `json:"why,omitempty"`    // for people: what was found, and what to do
}
