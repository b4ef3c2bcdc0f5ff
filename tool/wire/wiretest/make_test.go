package wiretest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

// maker draws tools, calls and outcomes from a fixed seed.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 1))} } //nolint:gosec // a test draws its cases from a fixed seed

func (m maker) flip() bool { return m.IntN(2) == 0 }

type object = map[string]any

func (m maker) schema(depth int) object {
	n := m.IntN(12)
	if depth == 0 {
		n = m.IntN(7)
	}
	switch n {
	case 0:
		return object{"type": "string", "minLength": m.IntN(3), "maxLength": 50, "description": "A <text> & \"more\" é."}
	case 1:
		return object{"type": "integer", "minimum": -1, "maximum": 2}
	case 2:
		return object{"type": "string", "enum": []any{"x", "y"}}
	case 3:
		return object{"type": "number", "exclusiveMinimum": 0.25, "multipleOf": 0.25}
	case 4:
		return object{"type": []any{"string", "null"}, "format": "date"}
	case 5:
		return object{"const": []any{"x", 1, true, nil}[m.IntN(4)]}
	case 6:
		return object{"type": "boolean", "title": "Flag", "default": true, "examples": []any{false}}
	case 7:
		return object{"type": "array", "items": m.schema(depth - 1), "minItems": m.IntN(3), "maxItems": 4, "uniqueItems": m.flip()}
	case 8:
		return object{[]string{"anyOf", "oneOf", "allOf"}[m.IntN(3)]: []any{m.schema(depth - 1), m.schema(depth - 1)}}
	case 9:
		return object{"$ref": "#/$defs/d", "description": "of d"}
	default:
		return m.object(depth)
	}
}

func (m maker) object(depth int) object {
	properties, required := object{}, []any{}
	for i := range m.IntN(4) {
		name := fmt.Sprintf("p%d", i)
		properties[name] = m.schema(depth - 1)
		if m.flip() {
			required = append(required, name)
		}
	}
	out := object{"type": "object", "properties": properties, "required": required}
	switch m.IntN(4) {
	case 0, 1:
		out["additionalProperties"] = false
	case 2:
		out["additionalProperties"] = object{"type": "string"}
	}
	if m.IntN(3) == 0 {
		out["description"] = "An object."
	}
	return out
}

// tools are some that one adapter takes, the last one of free text.
func (m maker) tools(t *testing.T) (list []tool.Tool) {
	t.Helper()
	for i := range 1 + m.IntN(3) {
		document := m.object(3)
		if m.IntN(4) == 0 {
			document = m.schema(2)
		}
		document["$defs"] = object{"d": m.schema(0)}
		text, err := json.Marshal(document)
		require.NoError(t, err)
		list = append(list, made(t, fmt.Sprintf("tool_%d", i), []string{"", "What it <does> & more."}[m.IntN(2)], text))
	}
	return append(list, made(t, "say", "", nil))
}

func made(t *testing.T, name, description string, input json.RawMessage) tool.Tool {
	t.Helper()
	out, err := tool.FromSpec(tool.Spec{
		Name: name, Description: description, Input: input,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, nil
		},
	})
	require.NoError(t, err)
	return out
}

// called is one call as a model writes it.
type called struct {
	id, name string
	args     json.RawMessage
}

func (m maker) calls(tools []tool.Tool) (list []called) {
	for i := range 1 + m.IntN(3) {
		args := json.RawMessage(fmt.Sprintf(`{"text":"a <b> & \"c\" é 世 %d","n":%d,"x":0.25,"list":[true,null,{"deep":[]}],"o":{}}`, i, m.IntN(1<<40)))
		if m.IntN(4) == 0 {
			args = json.RawMessage(`{}`)
		}
		name := tools[m.IntN(len(tools))].Name()
		if name == "say" {
			args = json.RawMessage(`{"input":"a <text> & \"more\" é"}`)
		}
		list = append(list, called{fmt.Sprintf("call_%d_%d", i, m.IntN(1000)), name, args})
	}
	return list
}

// outcomes are one for each call: every status, and every kind of result.
func (m maker) outcomes(calls []called) (list []tool.Outcome) {
	png, pdf := tool.Part{MediaType: "image/png", Data: []byte{0x89, 'P', 'N', 'G', 0}}, tool.Part{MediaType: "application/pdf", Data: []byte("%PDF-1.7")}
	results := []tool.Result{
		tool.Text("plain <text> & \"more\" é 世"), tool.Text(""),
		{JSON: json.RawMessage(`{"t":1.5,"list":[1,null,{"a":"<b>"}]}`)},
		{JSON: json.RawMessage(`[1,2.25,"x"]`)},
		{Text: "a map", Parts: []tool.Part{png}},
		{Text: "a paper", Parts: []tool.Part{pdf, png}},
		{Parts: []tool.Part{png}},
		{Parts: []tool.Part{{MediaType: "audio/wav", Data: []byte("RIFF")}}},
		{JSON: json.RawMessage(`null`)},
	}
	for _, c := range calls {
		status := append(tool.Statuses(), tool.StatusDone, tool.StatusDone, tool.StatusDone, "")[m.IntN(14)]
		o := tool.Outcome{Tool: c.name, Status: status, Text: "It ended as " + string(status) + "."}
		if status == tool.StatusDone {
			o.Result = results[m.IntN(len(results))]
			o.Output = o.Result.Output()
			if o.Text = o.Result.Text; o.Text == "" {
				o.Text = string(o.Output)
			}
		}
		list = append(list, o)
	}
	return list
}
