// Package frameworktest tests an adapter that gives remit's tools to an agent
// framework. It uses the framework's own loop with a scripted model. It checks
// the results that the model receives, that a failed call never looks
// successful, and that the loop survives it. It also checks the journal, and
// that a revert restores the workspace.
//
// The adapters are separate modules under examples. Each gives Try an [Agent].
package frameworktest

import (
	"encoding/json"
	"testing"

	"github.com/remit-dev/remit/agent"
)

// Ask is one call that the model requests.
type Ask struct{ ID, Tool, Args string }

// ModelMessage is the result of one call as the model received it. Failed says
// whether it was marked as an error by the framework's means: "Error: " at its
// beginning if the framework has none.
type ModelMessage struct {
	ID, Text string
	Failed   bool
}

// Run is the result of one run of an agent.
type Run struct {
	Offered  map[string]json.RawMessage // the schemas of the tools that the model received, by name
	Received [][]ModelMessage           // for each turn, in the order of its calls
}

// Agent runs the framework's agent once, with the tools of s and their calls in
// tx. Its model requests the calls of each turn, one turn after the other, and
// then finishes.
type Agent func(t *testing.T, s *agent.Session, tx *agent.Txn, turns [][]Ask) (Run, error)

// Framework describes the features of a framework.
type Framework struct {
	Agent Agent
	// Marks is set if the framework has a mark for errors.
	Marks bool
	// Text is set if arguments are a text to the framework, which may be
	// invalid JSON.
	Text bool
	// Unknown is a part of the result for an unknown tool. Empty: the framework
	// ends the run without calling a tool.
	Unknown string
}
