package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// Adapter speaks one format for one set of tools. It cannot be changed, may be copied and used by any number of goroutines,
// and refuses everything when zero.
type Adapter struct {
	format Format
	shape  shape
	tools  []wireTool
}

var errZero = errors.New("wire: the zero Adapter; make one with New")

// New makes an adapter for the tools that a model is offered, in the order in which it is told of them: those of
// agent.Session.Tools, say. The tools of one adapter are as different as those of a registry: none are named alike.
//
// Names go over the wire as they are, because a tool's name is one in every format. A call of any other name is refused.
func New(f Format, tools ...tool.Tool) (Adapter, error) {
	s, ok := shapes()[f]
	if !ok {
		return Adapter{}, fmt.Errorf("wire: unknown format %q; valid are %v", f, Formats())
	}
	if _, err := tool.NewRegistry(tools...); err != nil {
		return Adapter{}, fmt.Errorf("wire: %w", err)
	}
	a := Adapter{format: f, shape: s}
	for _, t := range tools {
		o, err := offer(t, s.plain)
		if err != nil {
			return Adapter{}, fmt.Errorf("wire: tool %q: %w", t.Name(), err)
		}
		a.tools = append(a.tools, o)
	}
	return a, nil
}

// Format returns the adapter's format.
func (a Adapter) Format() Format { return a.format }

// Strict returns an adapter that has the provider hold the model to the schema of each tool where the format can and the
// schema qualifies; see WhyNotStrict. Gemini and Ollama have no such mode. Not every model has it either, which is why it is
// not the default.
//
// An argument that may be left out may not be in OpenAI's strict mode. There it becomes one that may be null, and null is
// taken away again when a call is read. A tool whose schema does not allow this to be done and undone exactly is offered as
// it was.
func (a Adapter) Strict() Adapter {
	a.tools = slices.Clone(a.tools)
	if a.shape.strict == nil {
		return a
	}
	var used limitCounter
	for i, o := range a.tools {
		strict, counts, err := o.harden(*a.shape.strict)
		if err == nil {
			err = used.admit(counts, a.shape.strict.most)
		}
		if err != nil {
			a.tools[i].why = err.Error()
			continue
		}
		a.tools[i] = strict
	}
	return a
}

// WhyNotStrict says why a tool is not offered in strict mode, "" where it is.
func (a Adapter) WhyNotStrict(name string) string {
	i := slices.IndexFunc(a.tools, func(o wireTool) bool { return o.tool.Name() == name })
	switch {
	case i < 0:
		return "it is not offered"
	case a.tools[i].strict:
		return ""
	case a.shape.strict == nil:
		return "the format has no strict mode"
	case a.tools[i].why == "":
		return "the adapter is not strict"
	default:
		return a.tools[i].why
	}
}

// Definitions returns the list of tools of a request, as JSON: what goes into "tools", or into "toolConfig.tools" of Bedrock.
// Without tools it is empty.
func (a Adapter) Definitions() (json.RawMessage, error) {
	if a.format == "" {
		return nil, errZero
	}
	list := []any{}
	if len(a.tools) > 0 {
		var all []definition
		for _, o := range a.tools {
			all = append(all, definition{name: o.tool.Name(), description: o.tool.ModelDescription(), schema: o.schema, strict: o.strict})
		}
		list = a.shape.definitions(all)
	}
	return canon.Marshal(list)
}

// Results returns what answers the calls of one turn: the messages, or input items, that follow the turn in the history.
// There is one outcome for each call, in the same order; providers refuse a history in which a call has no answer. The
// outcome of a call with a Problem is not looked at.
//
// Outcomes say for themselves what happened, in the words that Outcome.Text has. If a format can mark an error, Results
// marks each outcome that is not a success. Otherwise the text begins with "Error: ".
func (a Adapter) Results(calls []Call, outcomes []tool.Outcome) ([]json.RawMessage, error) {
	switch {
	case a.format == "":
		return nil, errZero
	case len(calls) != len(outcomes):
		return nil, fmt.Errorf("wire: %d calls and %d outcomes, want one outcome for each call, in the same order", len(calls), len(outcomes))
	case len(calls) == 0:
		return nil, nil
	}
	answers := make([]answer, len(calls))
	for i, c := range calls {
		if o := outcomes[i]; c.Problem == nil && o.Tool != "" && o.Tool != c.Name {
			return nil, fmt.Errorf("wire: call %d is of tool %q and its outcome of %q, want the outcomes in the order of the calls", i+1, c.Name, o.Tool)
		}
		answers[i] = answerTo(c, outcomes[i])
	}
	var messages []json.RawMessage
	for _, m := range a.shape.results(answers) {
		raw, err := canon.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("wire: the results: %w", err)
		}
		messages = append(messages, raw)
	}
	return messages, nil
}
