package record

import (
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/revert/effect"
)

// Reverting is the write-ahead record of one revert of a call. Its header names
// the revert call; Of names the call that it reverts.
type Reverting struct {
	Of    CallRef `json:"of"`
	Key   string  `json:"key"`          // revert key
	Cause string  `json:"cause"`        // failed, verify_failed, savepoint, abort, revert, recovery, redo
	By    string  `json:"by,omitempty"` // principal that asked: the named person, or the principal of the program; empty: the runtime
	// Part is set if the revert was asked for some resources of the call only:
	// those of Steps. The other effects of the call stay.
	Part  bool          `json:"part,omitempty"`
	Steps []effect.Step `json:"steps"`
}

// Reverted is the result of reverting one call.
type Reverted struct {
	Of       CallRef         `json:"of"`
	Complete bool            `json:"complete"`
	Results  []effect.Result `json:"results"`
}

// Erased says that the record bodies of one call, or of one revert of a call,
// are destroyed. The same step stores it and destroys them. It is all that
// remains of the call.
type Erased struct {
	Cause  string       `json:"cause"`        // asked, retention
	By     string       `json:"by,omitempty"` // the person who asked for it
	Why    string       `json:"why,omitempty"`
	Tool   ToolRef      `json:"tool"`
	Class  effect.Class `json:"class,omitempty"`
	As     string       `json:"as,omitempty"`     // how the call had ended; empty for a revert
	Status string       `json:"status,omitempty"` // its outcome; empty: it had none
	Ended  time.Time    `json:"ended,omitzero"`
	// Counts are the call's additions to the counters of its session, if it was
	// Spent: an erasure does not refill a budget.
	Counts  map[string]json.Number `json:"counts,omitempty"`
	Spent   bool                   `json:"spent,omitempty"`
	Left    bool                   `json:"left,omitempty"`    // effects of the call may remain, and cannot be reverted any more
	Touched []string               `json:"touched,omitempty"` // resources that it changed; empty if a person asked for the erasure
}
