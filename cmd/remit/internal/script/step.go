package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/suggest"
)

// call is one call of a script. The runtime decodes the arguments, once and
// strictly.
type call struct {
	tool string
	args json.RawMessage // nil: no arguments
}

// input returns the arguments for the runtime.
func (c call) input() any {
	if c.args == nil {
		return nil
	}
	return c.args
}

// step is one line of a script. Exactly one member is set.
type step struct {
	calls     []call // one call, or several concurrent ones
	savepoint string
	revertTo  string
	end       string // commit or revert
}

// stepError says why a line is not a step, and how to fix it.
type stepError struct{ why, fix string }

// Error returns why the line is not a step.
func (e *stepError) Error() string { return e.why }

func badStep(fix, format string, args ...any) *stepError {
	return &stepError{why: fmt.Sprintf(format, args...), fix: fix}
}

// verbs lists the keys that select the kind of a step.
func verbs() []string {
	return []string{"tool", "parallel", "savepoint", "revert_to", "commit", "revert"}
}

const stepForms = `a step is {"tool":…,"args":{…}}, {"parallel":[…]}, {"savepoint":"…"}, {"revert_to":"…"}, {"commit":true} or {"revert":true}`

// parseStep parses one line.
func parseStep(text []byte) (step, error) {
	obj, err := parseObject(text, append(verbs(), "args"))
	if err != nil {
		return step{}, err
	}
	verb := ""
	for _, v := range verbs() {
		if _, there := obj[v]; !there {
			continue
		}
		if verb != "" {
			return step{}, badStep("make two lines of it", "keys %q and %q in one line: it can do one thing only", verb, v)
		}
		verb = v
	}
	if verb == "" {
		return step{}, badStep(stepForms, "nothing to do: no key says what")
	}
	if _, args := obj["args"]; args && verb != "tool" {
		return step{}, badStep("leave it out", `key "args" belongs to "tool", not to %q`, verb)
	}
	return stepOf(verb, obj)
}

func stepOf(verb string, obj map[string]json.RawMessage) (s step, err error) {
	switch verb {
	case "tool":
		var c call
		c, err = callOf(obj)
		s.calls = []call{c}
	case "parallel":
		s.calls, err = parseCalls(obj[verb])
	case "savepoint":
		s.savepoint, err = parseText(obj, verb)
	case "revert_to":
		s.revertTo, err = parseText(obj, verb)
	default:
		s.end = verb
		if string(obj[verb]) != "true" {
			err = badStep("write true, or leave the line out", "key %q: want true", verb)
		}
	}
	return s, err
}

func callOf(obj map[string]json.RawMessage) (c call, err error) {
	c.args = obj["args"]
	c.tool, err = parseText(obj, "tool")
	return c, err
}

// parseCalls parses the calls of a parallel step. One invalid call rejects all,
// before any of them runs.
func parseCalls(text json.RawMessage) ([]call, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil || items == nil {
		return nil, badStep(`write {"parallel":[{"tool":…,"args":{…}},…]}`, `key "parallel": want a list of calls`)
	}
	if len(items) == 0 {
		return nil, badStep("leave the line out", `key "parallel": the list is empty`)
	}
	var calls []call
	for i, item := range items {
		obj, err := parseObject(item, []string{"tool", "args"})
		if err == nil {
			var c call
			c, err = callOf(obj)
			calls = append(calls, c)
		}
		var bad *stepError
		if errors.As(err, &bad) {
			return nil, badStep(bad.fix, `key "parallel", call %d: %s`, i+1, bad.why)
		}
	}
	return calls, nil
}

// parseText returns a member that must be a text, and not empty.
func parseText(obj map[string]json.RawMessage, key string) (string, error) {
	raw, there := obj[key]
	if !there {
		return "", badStep(stepForms, "key %q is missing", key)
	}
	v, err := canon.Parse(raw, canon.DefaultLimits())
	if err != nil {
		return "", badStep("write plain text", "key %q: %v", key, err)
	}
	if v.Kind() != canon.String || v.Text() == "" {
		return "", badStep("write a text in quotes", "key %q: want a text, not %s", key, kindWords(v))
	}
	return v.Text(), nil
}

func kindWords(v canon.Value) string {
	switch v.Kind() {
	case canon.String:
		return "an empty one"
	case canon.Array, canon.Object:
		return "an " + v.Kind().String()
	case canon.Null:
		return "null"
	case canon.Bool, canon.Number, canon.Invalid:
	}
	return "a " + v.Kind().String()
}

// parseObject returns the members of an object with their original bytes. It
// rejects repeated, unknown and misspelt keys.
func parseObject(text []byte, known []string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	first, err := dec.Token()
	if err != nil {
		return nil, notJSON(err)
	}
	if first != json.Delim('{') {
		return nil, badStep(stepForms, "want an object")
	}
	obj := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		name, _ := key.(string) // the decoder accepts only strings as keys
		if err := checkKey(name, known, obj); err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, notJSON(err)
		}
		obj[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, badStep("one line, one step", "there is something after the end of the object")
	}
	return obj, nil
}

func checkKey(name string, known []string, obj map[string]json.RawMessage) error {
	if _, twice := obj[name]; twice {
		return badStep("write it once", "key %q is there twice", name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	valid := "valid are " + strings.Join(known, ", ")
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return badStep(fmt.Sprintf("write %q", k), "key %q differs from %q in case only", name, k)
		}
	}
	if near := suggest.Name(name, known); near != "" {
		valid = fmt.Sprintf("did you mean %q? %s", near, valid)
	}
	return badStep(valid, "key %q is not known", cli.Clip(name, 40))
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return badStep("write one whole JSON object a line", "not JSON: the line ends too early")
	}
	return badStep("write one whole JSON object a line", "not JSON: %v", err)
}
