package record

import (
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/revert/effect"
)

// Reverting is the write-ahead record of taking one call back. Its header names
// the undo call; Of names the call that is taken back.
type Reverting struct {
	Of    CallRef       `json:"of"`
	Key   string        `json:"key"`          // revert key
	Cause string        `json:"cause"`        // failed, verify_failed, savepoint, abort, undo, recovery, redo
	By    string        `json:"by,omitempty"` // who asked for it: the person where one is named, the principal whose program did; empty: the runtime itself
	Steps []effect.Step `json:"steps"`
}

// Reverted is what taking one call back came to.
type Reverted struct {
	Of       CallRef         `json:"of"`
	Complete bool            `json:"complete"`
	Results  []effect.Result `json:"results"`
}

// Erased says that the bodies of the records of one call are gone, of a call or of
// the taking back of one. It is stored in the same step in which they are
// destroyed, and is all that is left to say what the call was.
type Erased struct {
	Cause  string       `json:"cause"`        // asked, retention
	By     string       `json:"by,omitempty"` // the person who asked
	Why    string       `json:"why,omitempty"`
	Tool   ToolRef      `json:"tool"`
	Class  effect.Class `json:"class,omitempty"`
	As     string       `json:"as,omitempty"`     // how the call had ended; empty of a taking back
	Status string       `json:"status,omitempty"` // its outcome; empty where it never had one
	Ended  time.Time    `json:"ended,omitzero"`
	// Counts are what the call adds to sums of its session, where it was Spent: an
	// erasure gives no budget back.
	Counts  map[string]json.Number `json:"counts,omitempty"`
	Spent   bool                   `json:"spent,omitempty"`
	Left    bool                   `json:"left,omitempty"`    // something of the call may be there, and cannot be taken back any more
	Touched []string               `json:"touched,omitempty"` // what it changed; not where somebody asked
}
