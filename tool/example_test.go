package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// A tool of text in and text out touches nothing; saying that it is pure lets
// policies run it without asking.
func ExampleCreate() {
	upper, err := tool.Create("upper", "Upper-case a text.",
		func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	fmt.Println(upper.Name(), upper.Class(), upper.CanRevert(), err)
	// Output: upper pure true <nil>
}

// The schema comes from the Go type, and a need names the argument that says
// which file one call is about.
func ExampleCreateTyped() {
	type in struct {
		Path string `json:"path" jsonschema:"relative path"`
	}
	count, err := tool.CreateTyped("count_lines", "Count the lines of a file.",
		[]perm.ResourceAccess{{Action: perm.Read, Resource: "file://workspace/{path}"}},
		func(context.Context, ctxperm.ToolContext, in) (int, error) { return 0, nil }, tool.Pure())
	fmt.Println(string(count.InputSchema()), err)
	// Output:
	// {"additionalProperties":false,"properties":{"path":{"description":"relative path","type":"string"}},"required":["path"],"type":"object"} <nil>
}

// An undeclared effect class counts as having no way back.
func ExampleFromSpec() {
	_, err := tool.FromSpec(tool.Spec{Name: "Bad Name"})
	fmt.Println(err)
	var zero tool.Tool
	fmt.Println(zero.IsZero(), zero.Class())
	// Output:
	// tool "Bad Name": a name is lower-case letters, digits and single or double underscores between them, begins with a letter and has at most 64 characters
	// true pivot
}

// Parameters one by one, for those who write neither JSON Schema nor Go types. A call
// that leaves out what has a default comes to the tool with it.
func ExampleParams() {
	forecast, err := tool.FromSpec(tool.Spec{
		Name: "forecast", Description: "Tell the weather of the next days.", EffectClass: effect.Pure,
		Params: tool.Params{
			{Name: "city", Type: "string", Required: true},
			{Name: "days", Type: "integer", Default: 3},
		},
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("rain"), nil
		},
	})
	fmt.Println(string(forecast.InputSchema()), err)
	// Output:
	// {"additionalProperties":false,"properties":{"city":{"type":"string"},"days":{"default":3,"type":"integer"}},"required":["city"],"type":"object"} <nil>
}

// What a stateful tool holds has to come back from JSON as what it was.
func ExampleStateful() {
	type list struct{ Items []string }
	type bad struct{ Items []any }
	_, err := tool.Stateful("todo", "Keep a list.", nil,
		func(context.Context, ctxperm.ToolContext) (list, error) { return list{}, nil },
		func(_ context.Context, _ ctxperm.ToolContext, in string, was list) (int, list, error) {
			was.Items = append(was.Items, in)
			return len(was.Items), was, nil
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	fmt.Println(err)
	_, err = tool.Stateful("todo", "Keep a list.", nil,
		func(context.Context, ctxperm.ToolContext) (bad, error) { return bad{}, nil },
		func(_ context.Context, _ ctxperm.ToolContext, _ string, was bad) (int, bad, error) {
			return 0, was, nil
		})
	fmt.Println(err)
	// Output:
	// <nil>
	// tool "todo": state: field Items[] is the interface interface {}, and what it held is not told by JSON; name the type
}
