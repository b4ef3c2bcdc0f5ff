package effect

// Step is the planned revert of one resource: the planned outcome and, if
// something must be done, the counter-change. A counter-change is a Change: its
// Pre is the current version, its Post is the version to restore.
type Step struct {
	Of     []int   `json:"of"`               // numbers of the changes that it reverts
	Plan   Outcome `json:"plan"`             // restored, merged: apply Change; already, conflict, failed: do nothing
	Change Change  `json:"change"`           // the counter-change; without effect unless Plan is restored or merged
	Forced bool    `json:"forced,omitempty"` // it overwrites a version that another actor wrote
	Why    string  `json:"why,omitempty"`
}

// Overlap is a region of a text that a call and another actor both changed. No
// record has it.
type Overlap struct {
	Line   int    `json:"line"`   // first line of the region in the current version, from 1
	Lines  int    `json:"lines"`  // number of its lines there
	Now    string `json:"now"`    // its current text
	Before string `json:"before"` // its text before the call
}

// Outcome is the result of reverting one change.
type Outcome string

// The outcomes of a revert. The empty outcome counts as Unknown.
const (
	Restored Outcome = "restored" // the earlier version is restored
	Merged   Outcome = "merged"   // what the call changed is reverted, and what another actor changed is kept
	Already  Outcome = "already"  // the earlier version was present before the revert began
	Conflict Outcome = "conflict" // another actor's version is present; left unchanged
	Failed   Outcome = "failed"   // there is no inverse, or it failed
	Unknown  Outcome = "unknown"  // cannot be determined
)

// Clean reports whether nothing of the effect remains.
func (o Outcome) Clean() bool { return o.Applies() || o == Already }

// Applies reports whether a step with this plan changes the resource, or one
// with this outcome changed it.
func (o Outcome) Applies() bool { return o == Restored || o == Merged }

// Result is the result of reverting one resource.
type Result struct {
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	Now      Token   `json:"now,omitempty"`    // version afterwards, if known
	Forced   bool    `json:"forced,omitempty"` // it overwrote another actor's version, which is stored
	Why      string  `json:"why,omitempty"`    // for people: the state that was found, and what to do
}
