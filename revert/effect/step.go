package effect

// Step is the planned revert of one resource: the planned outcome and, if
// something must be done, the counter-change. A counter-change is a Change: its
// Pre is the current version, its Post is the version to restore.
type Step struct {
	Of     []int   `json:"of"`               // numbers of the changes that it reverts
	Plan   Outcome `json:"plan"`             // restored: apply Change; already, conflict, failed: do nothing
	Change Change  `json:"change"`           // the counter-change; without effect unless Plan is restored
	Forced bool    `json:"forced,omitempty"` // it overwrites a version that another actor wrote
	Why    string  `json:"why,omitempty"`
}

// Outcome is the result of reverting one change.
type Outcome string

// The outcomes of a revert. The empty outcome counts as Unknown.
const (
	Restored Outcome = "restored" // the earlier version is restored
	Already  Outcome = "already"  // the earlier version was present before the revert began
	Conflict Outcome = "conflict" // another actor's version is present; left unchanged
	Failed   Outcome = "failed"   // there is no inverse, or it failed
	Unknown  Outcome = "unknown"  // cannot be determined
)

// Clean reports whether nothing of the effect remains.
func (o Outcome) Clean() bool { return o == Restored || o == Already }

// Result is the result of reverting one resource.
type Result struct {
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	Now      Token   `json:"now,omitempty"`    // version afterwards, if known
	Forced   bool    `json:"forced,omitempty"` // it overwrote another actor's version, which is stored
	Why      string  `json:"why,omitempty"`    // for people: the state that was found, and what to do
}
