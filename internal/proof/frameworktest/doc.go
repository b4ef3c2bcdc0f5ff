// Package frameworktest tries an adapter that gives remit's tools to an agent framework, through the framework's own loop with
// a model that follows a script: what the model is told of each call, that a call that did not succeed never looks as if it
// had, that the loop outlives it, what is on the journal, and that undo leaves the workspace as it was.
//
// The adapters are modules of their own under examples. Each gives Try an [Agent].
package frameworktest

import (
	"encoding/json"
	"testing"

	"github.com/remit-dev/remit/agent"
)

// Ask is one call that the model asks for.
type Ask struct{ ID, Tool, Args string }

// ModelMessage is what the model was told of one call. Failed is whether it was marked as an error in the way of the framework, which
// is "Error: " at its beginning where the framework has none.
type ModelMessage struct {
	ID, Text string
	Failed   bool
}

// Run is what one run of an agent came to.
type Run struct {
	Offered map[string]json.RawMessage // the schemas of the tools that the model was told of, by name
	Told    [][]ModelMessage           // for each turn, in the order of its calls
}

// Agent runs the framework's agent once, with the tools of s and their calls in tx. Its model asks for the calls of each turn,
// one turn after the other, and then says that it has finished.
type Agent func(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]Ask) (Run, error)

// Framework is what a framework can do and not.
type Framework struct {
	Agent Agent
	// Marks says that the framework has a mark for errors.
	Marks bool
	// Text says that arguments are a text to the framework, which may be no JSON.
	Text bool
	// Unknown is a part of what the model is told of a tool that is not there. Empty: the framework ends the run, before
	// anybody is asked.
	Unknown string
}
