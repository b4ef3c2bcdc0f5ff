package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/tool"
)

// Call is one call that a model asked for.
type Call struct {
	ID   string `json:"id,omitempty"` // as the provider gave it; "" where it gave none
	Name string `json:"name"`         // of the tool
	// Input is what the model wrote, without what the definition added: for Invoke. Of a call with a Problem it may be nil, or
	// no JSON.
	Input json.RawMessage `json:"-"`
	// Problem says why the call cannot be run, in words for the model; nil where it can.
	Problem *tool.Problem `json:"problem,omitempty"`
}

// Refused returns the outcome of a call with a Problem: invalid. Results gives it by itself; a program wants it for its own
// log. A call without a Problem gets the zero Outcome, which is no success either.
func (c Call) Refused() tool.Outcome {
	if c.Problem == nil {
		return tool.Outcome{}
	}
	text := "Not a valid call: " + c.Problem.Why + ". "
	if c.Problem.Fix != "" {
		text += c.Problem.Fix + ". "
	}
	return tool.Outcome{
		Tool: c.Name, Status: tool.StatusInvalid, Output: json.RawMessage("null"), Changes: []tool.Change{},
		Error: c.Problem, Text: text + "Repeating it unchanged cannot help.",
	}
}

// turn is what a format finds in an assistant's turn.
type turn struct {
	text      string
	calls     []wireCall
	end       stopReason
	paused    bool
	malformed bool
}

// wireCall is one call as it stands on the wire.
type wireCall struct {
	id, name string
	args     json.RawMessage // nil: there are none
	written  bool            // the arguments were a text, which holds the JSON
	bad      string          // what is wrong with its form
	partial  bool            // it says itself that it is not complete
}

// stopReason is how a turn ended, as far as its calls go.
type stopReason uint8

const (
	whole     stopReason = iota
	cut                  // at a limit: the last call may be a part of what was meant
	discarded            // by a filter, or for an unknown reason: none of its calls counts
)

// endingOf reads a reason that a format gives; "" is none. An unknown reason is taken in the strictest way.
func endingOf(reason string, complete, short []string) stopReason {
	switch {
	case reason == "" || slices.Contains(complete, reason):
		return whole
	case slices.Contains(short, reason):
		return cut
	default:
		return discarded
	}
}

// Calls reads the calls of one assistant turn: the body of a response, or the turn alone as it goes into the history. The
// body is better, because it says whether the turn is complete. The order is that of the turn; there may be none.
//
// The error is about a turn that cannot be read at all, such as the body of an error. What is wrong with one call is its
// Problem.
func (a Adapter) Calls(raw json.RawMessage) ([]Call, error) {
	if a.format == "" {
		return nil, errZero
	}
	t, err := a.shape.turn(raw)
	if err != nil {
		return nil, fmt.Errorf("wire: no turn of the format %s: %w", a.format, err)
	}
	ids := map[string]int{}
	for _, f := range t.calls {
		ids[f.id]++
	}
	calls := make([]Call, len(t.calls))
	for i, f := range t.calls {
		calls[i] = Call{ID: f.id, Name: f.name, Input: f.args}
		last := i == len(t.calls)-1
		why, fix := a.misshapen(f, ids[f.id] > 1)
		switch {
		case why != "":
		case t.end == discarded:
			why, fix = "the turn was ended before it was complete, so nothing of it was run", "Ask again"
		case f.partial, t.end == cut && last:
			why, fix = "the turn reached its limit of length, and this call may be a part only", "Send a shorter call, or several"
		default:
			calls[i].Input, why, fix = a.input(f)
		}
		calls[i].Problem = problem(why, fix)
	}
	return calls, nil
}

// Call reads one call that another program has already taken out of its turn,
// such as a framework that runs an agent's tools. The id can be empty if the
// framework does not provide it. The arguments are the JSON of an object, which
// some formats carry as a text.
func (a Adapter) Call(id, name string, arguments json.RawMessage) Call {
	c := Call{ID: id, Name: name, Input: arguments}
	why, fix := a.misnamed(name)
	if why == "" {
		c.Input, why, fix = a.input(wireCall{name: name, args: arguments, written: true})
	}
	c.Problem = problem(why, fix)
	return c
}

func problem(why, fix string) *tool.Problem {
	if why == "" {
		return nil
	}
	return &tool.Problem{What: "The call was not run.", Why: why, Fix: fix}
}

// misshapen says what is wrong with a call before its arguments are looked at.
func (a Adapter) misshapen(f wireCall, twice bool) (why, fix string) {
	switch {
	case f.bad != "":
		return f.bad, ""
	case f.id == "" && a.shape.ids:
		return "it has no id", "Give each call an id of its own"
	case f.id != "" && twice:
		return "another call of this turn has the same id", "Give each call an id of its own"
	}
	return a.misnamed(f.name)
}

// misnamed says why a name is not that of a tool.
func (a Adapter) misnamed(name string) (why, fix string) {
	switch {
	case name == "":
		return "it names no tool", a.there()
	case !slices.ContainsFunc(a.tools, func(o wireTool) bool { return o.tool.Name() == name }):
		shown := canon.Printable(name, 80)
		var names []string
		for _, o := range a.tools {
			names = append(names, o.tool.Name())
		}
		if near := suggest.Name(name, names); near != "" {
			return fmt.Sprintf("there is no tool %q", shown), fmt.Sprintf("Did you mean %q? Nothing was run", near)
		}
		return fmt.Sprintf("there is no tool %q", shown), a.there()
	}
	return "", ""
}

// there lists the tools for a model that named none of them.
func (a Adapter) there() string {
	const most = 50
	var names []string
	for _, o := range a.tools[:min(len(a.tools), most)] {
		names = append(names, o.tool.Name())
	}
	switch {
	case len(names) == 0:
		return "There are no tools"
	case len(a.tools) > most:
		return "There are: " + strings.Join(names, ", ") + fmt.Sprintf(" and %d others", len(a.tools)-most)
	default:
		return "There are: " + strings.Join(names, ", ")
	}
}

// input is what the tool gets: one JSON object that has one reading, without what its definition added.
func (a Adapter) input(f wireCall) (in json.RawMessage, why, fix string) {
	const object = "Send one JSON object; {} where the tool takes no arguments"
	if len(strings.TrimSpace(string(f.args))) == 0 {
		return f.args, "its arguments are empty", object
	}
	v, err := canon.Parse(f.args, canon.DefaultLimits())
	switch {
	case err != nil && f.written:
		return f.args, "its arguments are a text that holds no JSON: " + err.Error(), object
	case err != nil:
		return f.args, "its arguments: " + err.Error(), object
	case v.Kind() != canon.Object:
		return f.args, "its arguments are of type " + v.Kind().String() + ", want object", object
	}
	i := slices.IndexFunc(a.tools, func(o wireTool) bool { return o.tool.Name() == f.name })
	return a.tools[i].own(f.args, v)
}
