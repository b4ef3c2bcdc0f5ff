package record

import (
	"strings"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
)

// State says what a stateful tool holds for one session from here on. The newest one of
// a tool and a session counts, in whichever stream. One that a call leaves stands between
// its Changed and its Done, in the same step; one that an undo or a redo comes to stands
// before that Reverted, in the same step. Its header names no call but the state itself:
// prune drops the records of a call, and the session goes on.
type State struct {
	Session string          `json:"session"`
	Tool    string          `json:"tool"`
	Of      CallRef         `json:"of"`                // the call that left it, was taken back to it or was brought back to it
	Version effect.Token    `json:"version"`           // Absent: nothing, the next call begins anew
	Content *effect.BlobRef `json:"content,omitempty"` // canonical JSON
}

// ID makes the id of a state's record. It names the tool, so that an erased one still says
// whose it was.
func (s State) ID(h host.Host) string { return host.NewID(h, statePrefix+s.Tool+"_") }

// IsOf reports whether a record's id is that of a state of the same tool.
func (s State) IsOf(id string) bool { return StateTool(id) == s.Tool }

const statePrefix = "v_"

// StateTool is the tool that the id of a state's record names.
func StateTool(id string) string {
	name := strings.TrimPrefix(id, statePrefix)
	return name[:max(strings.LastIndexByte(name, '_'), 0)]
}
