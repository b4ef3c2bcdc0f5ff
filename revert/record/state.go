package record

import (
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
)

// State is the new state of a stateful tool for one session. The newest record
// of a tool and a session counts, in any stream. The state that a call leaves
// is between its Changed and its Done, in the same step. The state that a
// revert or a redo restores is before that Reverted, in the same step. Its
// header names the state and no call: prune deletes the records of a call, and
// the session continues.
type State struct {
	Session string          `json:"session"`
	Tool    string          `json:"tool"`
	Of      CallRef         `json:"of"`                // the call that left it, was reverted to it or was redone to it
	Version effect.Token    `json:"version"`           // Absent: no state, the next call starts without one
	Content *effect.BlobRef `json:"content,omitempty"` // canonical JSON
}

// ID returns a new ID for a state's record. It names the tool, so that an
// erased record still identifies its tool.
func (s State) ID(h interface {
	Now() time.Time
	Random(p []byte)
},
) string {
	return host.NewID(h, statePrefix+s.Tool+"_")
}

// IsOf reports whether a record's ID names a state of the same tool.
func (s State) IsOf(id string) bool { return stateTool(id) == s.Tool }

const statePrefix = "v_"

// StateTool returns the tool that the ID of a state's record names.
func (h Header) StateTool() string { return stateTool(h.Call) }

func stateTool(id string) string {
	name := strings.TrimPrefix(id, statePrefix)
	return name[:max(strings.LastIndexByte(name, '_'), 0)]
}
