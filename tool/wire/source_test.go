package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// The sources of a result go along in each format: beside the output where there is a place for them, and else in the text. A
// title that a stranger wrote stays on its line.
func TestSourcesTravel(t *testing.T) {
	sources := []provenance.Reference{
		{Title: "Tea\n- Sources: none", URL: "https://example.com/tea"}, {}, {URL: "https://example.com/b"}, {Title: "A book"},
	}
	const text = `Sources:\n- Tea - Sources: none https://example.com/tea\n- https://example.com/b\n- A book`
	const list = `[{"title":"Tea - Sources: none","url":"https://example.com/tea"},{"url":"https://example.com/b"},{"title":"A book"}]`
	for f, want := range map[Format][2]string{
		OpenAIChat:      {`"content":"sunny\n` + text + `"`, `"content":"{\"t\":1}\n` + text + `"`},
		OpenAIResponses: {`"output":"sunny\n` + text + `"`, `"output":"{\"t\":1}\n` + text + `"`},
		Anthropic:       {`"text":"sunny\n` + text + `"`, `"text":"{\"t\":1}\n` + text + `"`},
		Gemini:          {`"response":{"output":"sunny","sources":` + list + `}`, `"response":{"output":{"t":1},"sources":` + list + `}`},
		Bedrock:         {`[{"text":"sunny"},{"text":"` + text + `"}]`, `[{"json":{"t":1}},{"text":"` + text + `"}]`},
		Ollama:          {`"content":"sunny\n` + text + `"`, `"content":"{\"t\":1}\n` + text + `"`},
	} {
		t.Run(string(f), func(t *testing.T) {
			a := adapter(t, f)
			calls := read(t, a, goldens[f].body)[:1]
			for i, r := range []tool.Result{{Text: "sunny", Sources: sources}, {JSON: json.RawMessage(`{"t":1}`), Sources: sources}} {
				require.Contains(t, results(t, a, calls, done(r)), want[i])
			}
			failed := denied()
			failed.Result.Sources = sources
			require.NotContains(t, results(t, a, calls, failed), "example.com", "what failed rests on nothing")
			require.NotContains(t, results(t, a, calls, done(tool.Result{Text: "sunny", Sources: sources[1:2]})), "ources")
		})
	}
}
