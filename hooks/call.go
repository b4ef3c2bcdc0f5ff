package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// call is one use of a client's tool while the client works on it.
type call struct {
	session *session
	id      string // the client's ID of the use
	agent   string // the sub-agent that acts
	input   json.RawMessage
	kind    toolKind
	use     use
	name    string // of the tool
	behind  bool   // a sandboxed command in the background
	alone   bool   // in a transaction of its own
	number  int    // of the session's uses
	txn     *agent.Txn
	cancel  context.CancelCauseFunc
	token   string // names a sandboxed command to remit exec

	ready  chan struct{} // closed when the client may use its tool
	ended  chan report   // how the client's tool ended; one element
	attach chan *Command // the process that shows a sandboxed command; without a buffer, so that none is given and not taken
	done   chan struct{} // closed when the call has its outcome
	over   bool          // after done; the session's mu guards it

	shown    *Command // of a sandboxed command; set before done
	attached atomic.Bool
	code     int      // its exit code
	notices  []string // what the command met and may have hidden, for the model

	started sync.Once
	out     tool.Outcome // after done
	err     error
	person  bool         // the client can ask the person
	waits   bool         // the client asks the person; set before ready
	asked   tool.Outcome // of a call that waited for the client to ask; set before ready
	agreed  bool         // the client used its tool, and reported no failure; set before done
}

// report is how a client's tool ended.
type report struct {
	Output  json.RawMessage
	Failed  bool
	Unknown string // why the client did not report; empty: it did
}

func newCall(s *session, e Event, u use) *call {
	return &call{
		session: s, id: e.Use, agent: e.Agent, input: e.Input, kind: u.kind, use: u, person: s.client.Asks && !e.Unasked,
		ready: make(chan struct{}), ended: make(chan report, 1), attach: make(chan *Command), done: make(chan struct{}),
	}
}

// callKey is the key of the call in the context of its tool.
type callKey struct{}

// errNoUse says that a tool of this package was called by another caller.
var errNoUse = errors.New("only a coding agent uses this tool, by its hooks")

func usedBy(ctx context.Context) (*call, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return nil, tool.NoEffect(errNoUse)
	}
	return c, nil
}

// proceed lets the client use its tool, and returns how that ended. It also
// returns when the context ends: nobody waits for the client any more.
func (c *call) proceed(ctx context.Context) report {
	c.started.Do(func() { close(c.ready) })
	select {
	case r := <-c.ended:
		c.agreed = r.Unknown == "" && !r.Failed
		return r
	case <-ctx.Done():
		return report{Unknown: "remit stopped waiting: " + context.Cause(ctx).Error()}
	}
}

// begun reports whether the client was let use its tool.
func (c *call) begun() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// fits reports whether an input is that of the use, or the rewritten one.
func (c *call) fits(in json.RawMessage) bool {
	command := newInput(in, "", "").text("command", "cmd")
	return bytes.Equal(in, c.input) || c.token != "" && strings.Contains(command, " --call "+c.token+" ")
}

// end tells the call how the client's tool ended. Only the first report counts.
func (c *call) end(r report) {
	select {
	case c.ended <- r:
	default:
	}
}

// maxOutput bounds what the journal has of the output of a client's tool, in
// bytes.
const maxOutput = 32 << 10

// result is the result of a call for the journal.
func (r report) result() (tool.Result, error) {
	out := map[string]any{"reported": r.Unknown == "", "failed": r.Failed}
	text := string(r.Output)
	if json.Unmarshal(r.Output, &text) != nil {
		text = string(r.Output)
	}
	if len(text) > maxOutput {
		out["cut"] = len(text) - maxOutput
		text = text[:maxOutput/2] + "\n…\n" + text[len(text)-maxOutput/2:]
	}
	text = printable(text)
	out["output"] = text
	if r.Unknown != "" {
		out["why"] = r.Unknown
	}
	raw, err := canon.Marshal(out)
	return tool.Result{JSON: raw, Text: text}, err
}

// printable returns a text as JSON can hold it.
func printable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
