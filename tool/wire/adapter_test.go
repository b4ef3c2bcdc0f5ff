package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

func TestNewRefusesWhatItCannotSpeak(t *testing.T) {
	_, err := New("")
	require.ErrorContains(t, err, "unknown format")
	_, err = New("azure")
	require.ErrorContains(t, err, "valid are [openai_chat openai_responses anthropic gemini bedrock ollama]")
	_, err = New(Gemini, tool.Tool{})
	require.ErrorContains(t, err, "the zero Tool")
	_, err = New(Gemini, made(t, "ab", "", ""), made(t, "a_b", "", ""))
	require.ErrorContains(t, err, "could be taken for one another")
}

func TestTheZeroAdapterRefusesEverything(t *testing.T) {
	var a Adapter
	_, err := a.Definitions()
	require.ErrorIs(t, err, errZero)
	_, err = a.Request(ToolChoice{})
	require.ErrorIs(t, err, errZero)
	_, err = a.Calls(json.RawMessage(goldens[Gemini].body))
	require.ErrorIs(t, err, errZero)
	_, err = a.Results(nil, nil)
	require.ErrorIs(t, err, errZero)
	require.Equal(t, Format(""), a.Strict().Format())
	require.Equal(t, "it is not offered", a.WhyNotStrict("weather"))
}

func TestNoToolsAreNoList(t *testing.T) {
	for _, f := range Formats() {
		a, err := New(f)
		require.NoError(t, err)
		require.Equal(t, "[]", definitions(t, a))
		request, err := a.Request(ToolChoice{})
		require.NoError(t, err)
		require.Empty(t, request)
		_, err = a.Request(ToolChoice{Mode: Required})
		require.ErrorContains(t, err, "no tool is offered")
		calls := read(t, a, turnOf(f, [3]string{"1", "weather", carriedArgs(f, "{}")}))
		require.Equal(t, "There are no tools", calls[0].Problem.Fix)
	}
}

func TestAChoiceThatSaysTwoThingsIsRefused(t *testing.T) {
	for want, choice := range map[string]ToolChoice{
		`unknown mode "any"`:           {Mode: "any"},
		"wants the mode required":      {Mode: Auto, Tool: "weather"},
		`"wether", which is not`:       {Mode: Required, Tool: "wether"},
		"at most one call, and none":   {Mode: None, Single: true},
		`tool "say" wants the mode re`: {Tool: "say"},
	} {
		_, err := adapter(t, OpenAIChat).Request(choice)
		require.ErrorContains(t, err, want)
	}
}

func TestEachCallHasOneOutcome(t *testing.T) {
	for _, f := range Formats() {
		a := adapter(t, f)
		calls := read(t, a, goldens[f].body)
		_, err := a.Results(calls, []tool.Outcome{done(tool.Text("x"))})
		require.ErrorContains(t, err, "2 calls and 1 outcomes")
		_, err = a.Results(calls, []tool.Outcome{{Tool: "say"}, {Tool: "weather"}})
		require.ErrorContains(t, err, `call 1 is of tool "weather" and its outcome of "say"`)
	}
}

// Every outcome but a success reads as an error, the zero Outcome too.
func TestNoOutcomeLooksLikeASuccessUnlessItIsOne(t *testing.T) {
	for _, f := range Formats() {
		a := adapter(t, f)
		call := read(t, a, goldens[f].body)[:1]
		for _, status := range append(tool.Statuses(), "", "new") {
			for _, text := range []string{"", "words"} {
				o := tool.Outcome{Status: status, Text: text, Result: tool.Text("done well"), Output: json.RawMessage(`"done well"`)}
				told := results(t, a, call, o)
				marked := strings.Contains(told, map[Format]string{
					OpenAIChat: `"Error: `, OpenAIResponses: `"Error: `, Anthropic: `"is_error":true`, Gemini: `{"error":`, Bedrock: `"status":"error"`, Ollama: `"Error: `,
				}[f])
				require.Equal(t, !status.OK(), marked, "%s: %q: %s", f, status, told)
				require.NotContains(t, told, "done well")
				require.Equal(t, text == "" && status != tool.StatusDone, strings.Contains(told, "not known how this call ended"))
			}
		}
	}
}

func TestABlankTextIsReported(t *testing.T) {
	for _, f := range Formats() {
		a := adapter(t, f)
		call := read(t, a, goldens[f].body)[:1]
		require.Contains(t, results(t, a, call, done(tool.Result{Text: " \n"})), `\" \\n\"`)
		require.Contains(t, results(t, a, call, done(tool.Text("a\xffb"))), "a\uFFFDb")
	}
}

func TestPartsGoAsWhatTheyAre(t *testing.T) {
	parts := []tool.Part{
		{MediaType: "text/plain; charset=utf-8", Data: []byte("note")},
		{MediaType: "application/pdf", Data: []byte("pdf")},
		{MediaType: "audio/wav", Data: []byte("wav!")},
		{MediaType: "IMAGE/JPEG", Data: []byte("jpg")},
	}
	for _, f := range Formats() {
		a := adapter(t, f)
		told := results(t, a, read(t, a, goldens[f].body)[:1], done(tool.Result{Parts: parts}))
		require.Contains(t, told, `note\n[`, f)
		require.Contains(t, told, "[audio/wav, 4 bytes, which cannot be shown here]")
		require.Equal(t, f == OpenAIChat || f == Ollama, strings.Contains(told, "[application/pdf, 3 bytes"), told)
		require.Contains(t, told, map[Format]string{
			OpenAIChat: "[IMAGE/JPEG, 3 bytes", OpenAIResponses: `"image_url":"data:image/jpeg;base64,anBn"`, Ollama: "[IMAGE/JPEG, 3 bytes",
			Anthropic: `"type":"document"`, Gemini: `"mimeType":"application/pdf"`, Bedrock: `"format":"jpeg"`,
		}[f])
		require.Contains(t, told, map[Format]string{
			OpenAIResponses: `"filename":"part-1.pdf"`, Anthropic: `"media_type":"image/jpeg"`, Bedrock: `"name":"part-1"`,
		}[f])
	}
	// Nothing but an image is no empty text beside it.
	for _, f := range []Format{OpenAIResponses, Anthropic, Bedrock} {
		a := adapter(t, f)
		told := results(t, a, read(t, a, goldens[f].body)[:1], done(tool.Result{Parts: parts[3:]}))
		require.NotContains(t, told, `"text"`, f)
	}
}

func TestStructuredOutputThatIsNoObject(t *testing.T) {
	list := done(tool.Result{JSON: json.RawMessage(`[12345678901234567890]`)})
	for f, want := range map[Format]string{
		Gemini: `"output":[12345678901234567890]`, Bedrock: `"text":"[12345678901234567890]"`, Anthropic: `"text":"[12345678901234567890]"`,
	} {
		a := adapter(t, f)
		require.Contains(t, results(t, a, read(t, a, goldens[f].body)[:1], list), want)
	}
}

func TestStructuredOutputThatIsTooDeepIsAText(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 127) + "1" + strings.Repeat("}", 127)
	for _, f := range Formats() {
		a := adapter(t, f)
		told := results(t, a, read(t, a, goldens[f].body)[:1], done(tool.Result{JSON: json.RawMessage(deep)}))
		require.Contains(t, told, `"{\"a\":{`, f)
	}
}

func TestManyToolsAreNotAllListedToTheModel(t *testing.T) {
	var tools []tool.Tool
	for i := range 60 {
		tools = append(tools, made(t, fmt.Sprintf("tool%d", i), "", ""))
	}
	a, err := New(Anthropic, tools...)
	require.NoError(t, err)
	calls := read(t, a, turnOf(Anthropic, [3]string{"1", "completely_different", "{}"}))
	require.Contains(t, calls[0].Problem.Fix, "and 10 others")
	// So many are not all strict either: the first are.
	a = a.Strict()
	require.Empty(t, a.WhyNotStrict("tool19"))
	require.Contains(t, a.WhyNotStrict("tool20"), "a request may have 20 strict tools")
	require.Equal(t, 20, strings.Count(definitions(t, a), `"strict":true`))
}

func TestReferencesThatLeadNowhereElse(t *testing.T) {
	// The compiler of schemas takes references that only it can follow: by an anchor, or into a schema with a name of its own.
	for _, input := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#here"},"b":{"$anchor":"here","type":"string"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#here","description":"A."},"b":{"$anchor":"here","type":"string"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#here","anyOf":[{"type":"string"}]},"b":{"$anchor":"here","type":"string"}}}`,
		`{"$id":"https://example.com/x","anyOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":true}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":true}}`,
	} {
		for _, f := range Formats() {
			a, err := New(f, made(t, "x", "", input))
			require.NoError(t, err, input)
			require.NotEmpty(t, a.Strict().WhyNotStrict("x"))
			told := definitions(t, a)
			if f == Ollama {
				require.NotContains(t, told, `"$ref":`)
			}
			if f == Gemini && strings.Contains(input, "A.") {
				require.Contains(t, told, `{"anyOf":[{"$ref":"#here"}],"description":"A."}`)
			}
		}
	}
}

// References that are replaced multiply; a schema that grows too large is refused, and not told in part.
func TestASchemaThatGrowsTooLargeIsRefused(t *testing.T) {
	defs := `"d0":{"type":"string"}`
	for i := range 16 {
		defs += fmt.Sprintf(`,"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}},"required":["a","b"]}`, i+1, i, i)
	}
	x := made(t, "x", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/d16"}},"required":["a"],"$defs":{`+defs+`}}`)
	_, err := New(Ollama, x)
	require.ErrorContains(t, err, `tool "x": the schema is too large`)
	a, err := New(Anthropic, x)
	require.NoError(t, err)
	require.Contains(t, a.Strict().WhyNotStrict("x"), "too large for strict mode")
}
