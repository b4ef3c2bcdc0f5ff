package pipeline

import (
	"bytes"
	"encoding/json"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// deliver puts the journaled result into an outcome. It is exactly the recorded
// one, and shares no memory with the tool but a text that the tool returned and
// the record repeats: no code can change it, and it may be long.
func (s settled) deliver(out *tool.Outcome) {
	if bytes.Equal(s.shown, s.output) && onlyText(s.shown) {
		out.Result = tool.Result{Text: s.result.Text}
	} else {
		out.Result = cloneResult(s.shown)
	}
	if out.Output = out.Result.JSON; out.Output == nil {
		out.Output = programOutput(s.shown)
	}
}

// onlyText reports whether an encoded result is a text and nothing else.
func onlyText(output []byte) bool { return bytes.HasPrefix(output, []byte(`{"text":`)) }

// programOutput returns what [tool.Result.Output] returns of an encoded result,
// without decoding it. It shares the memory of the encoded result.
func programOutput(output []byte) json.RawMessage {
	for _, name := range []string{"json", "text"} {
		if value := canon.Member(output, name); value != nil {
			return value
		}
	}
	return json.RawMessage(`""`)
}

// cloneResult decodes an encoded result. It shares no memory with it.
func cloneResult(output []byte) tool.Result {
	var r tool.Result
	if err := canon.Decode(output, &r); err != nil {
		return tool.Result{}
	}
	return r
}
