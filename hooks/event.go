package hooks

import "encoding/json"

// Moment is a point in the life of a session at which a client runs a hook.
type Moment string

// The moments. Others need no answer.
const (
	SessionStarts Moment = "session-start"
	PromptStarts  Moment = "prompt-start" // a person gave a prompt
	BeforeTool    Moment = "before-tool"
	AfterTool     Moment = "after-tool" // also after a tool that failed
	PromptEnds    Moment = "prompt-end" // the agent waits for the next prompt
	SessionEnds   Moment = "session-end"
	OtherMoment   Moment = "other"
)

// Event is one event of a client.
type Event struct {
	Name    string // in the client's own words, such as PreToolUse
	Moment  Moment
	Session string // the client's ID of the session
	Prompt  string // the client's ID of the prompt; empty: unknown
	Text    string // with PromptStarts: the prompt
	Agent   string // the sub-agent that acts; empty: the main agent
	Dir     string // the agent's current folder, absolute

	Use    string          // ID of the use of a tool; empty: the client gives none
	Tool   string          // the client's own name of the tool
	Input  json.RawMessage // of the tool
	Output json.RawMessage // with AfterTool: what the tool returned, if the client tells
	Failed bool            // with AfterTool: the tool failed

	// Unasked reports whether the client runs in a mode in which it can let a
	// use pass that a hook wants to be asked about.
	Unasked bool
	Quiet   bool // with PromptEnds: the client says that nothing runs in the background
}

// Verdict is the answer to a use of a tool.
type Verdict string

// The verdicts. The zero Verdict leaves the decision to the client, and is only
// an answer to events that ask for none.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Ask   Verdict = "ask" // the client asks the person at its own prompt
)

// Answer is the answer to an event.
type Answer struct {
	Verdict Verdict
	Reason  string          // for the model, or for the person with Ask
	Input   json.RawMessage // replaces the input of the tool; nil: it stays
	Failed  string          // with AfterTool: why the call does not stand, for the model
	Notice  string          // with SessionStarts: for the person, if the client shows it
}

// Reply is an answer in the form of a client: what its hook writes and returns.
type Reply struct {
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	Exit   int    `json:"exit,omitempty"`
}
