package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// turnOf writes a turn of a format with calls as the test wants them; args are the JSON of an object or a text, "" for none.
func turnOf(f Format, calls ...[3]string) string {
	var list []string
	for _, c := range calls {
		id, name, args := quoted(c[0]), quoted(c[1]), c[2]
		if args == "" {
			args = "null"
		}
		list = append(list, map[Format]string{
			OpenAIChat:      `{"id":` + id + `,"type":"function","function":{"name":` + name + `,"arguments":` + args + `}}`,
			OpenAIResponses: `{"type":"function_call","call_id":` + id + `,"name":` + name + `,"arguments":` + args + `}`,
			Anthropic:       `{"type":"tool_use","id":` + id + `,"name":` + name + `,"input":` + args + `}`,
			Gemini:          `{"functionCall":{"id":` + id + `,"name":` + name + `,"args":` + args + `}}`,
			Bedrock:         `{"toolUse":{"toolUseId":` + id + `,"name":` + name + `,"input":` + args + `}}`,
			Ollama:          `{"id":` + id + `,"function":{"name":` + name + `,"arguments":` + args + `}}`,
		}[f])
	}
	all := "[" + strings.Join(list, ",") + "]"
	return map[Format]string{
		OpenAIChat:      `{"role":"assistant","tool_calls":` + all + `}`,
		OpenAIResponses: all,
		Anthropic:       `{"role":"assistant","content":` + all + `}`,
		Gemini:          `{"role":"model","parts":` + all + `}`,
		Bedrock:         `{"role":"assistant","content":` + all + `}`,
		Ollama:          `{"role":"assistant","tool_calls":` + all + `}`,
	}[f]
}

// quoted is a JSON string, and null for "-".
func quoted(s string) string {
	if s == "-" {
		return "null"
	}
	return fmt.Sprintf("%q", s)
}

// carriedArgs writes arguments as the format carries them.
func carriedArgs(f Format, args string) string {
	if f == OpenAIChat || f == OpenAIResponses {
		return fmt.Sprintf("%q", args)
	}
	return args
}

func TestACallThatCannotRunHasAProblem(t *testing.T) {
	good := `{"city":"x"}`
	for _, f := range Formats() {
		a := adapter(t, f)
		for _, c := range []struct {
			what string
			call [3]string
			want string // "": no problem
		}{
			{"all is well", [3]string{"1", "weather", carriedArgs(f, good)}, ""},
			{"no id", [3]string{"-", "weather", carriedArgs(f, good)}, map[bool]string{true: "it has no id"}[a.shape.ids]},
			{"an empty id", [3]string{"", "weather", carriedArgs(f, good)}, map[bool]string{true: "it has no id"}[a.shape.ids]},
			{"no name", [3]string{"1", "-", carriedArgs(f, good)}, "it names no tool"},
			{"an unknown name", [3]string{"1", "wether", carriedArgs(f, good)}, `there is no tool "wether"`},
			{"a name in another case", [3]string{"1", "Weather", carriedArgs(f, good)}, `there is no tool "Weather"`},
			{"no arguments", [3]string{"1", "weather", ""}, map[bool]string{true: "its arguments are empty"}[f != Gemini]},
			{"a list", [3]string{"1", "weather", carriedArgs(f, `[1]`)}, "its arguments are of type array, want object"},
			{"two of one name", [3]string{"1", "weather", carriedArgs(f, `{"city":"x","city":"y"}`)}, "occurs more than once"},
			{"half a character", [3]string{"1", "weather", carriedArgs(f, `{"city":"\ud800"}`)}, "surrogate"},
			{"too exact a number", [3]string{"1", "weather", carriedArgs(f, `{"city":1e999}`)}, "invalid JSON"},
			{"a text without its object", [3]string{"1", "say", carriedArgs(f, `{"text":"x"}`)}, `want the one argument "input"`},
			{"a text with more", [3]string{"1", "say", carriedArgs(f, `{"input":"x","more":1}`)}, `want the one argument "input"`},
		} {
			calls := read(t, a, turnOf(f, c.call))
			require.Len(t, calls, 1)
			if c.want == "" {
				require.Nil(t, calls[0].Problem, "%s: %s", f, c.what)
				require.Equal(t, tool.Outcome{}, calls[0].Refused())
				continue
			}
			require.NotNil(t, calls[0].Problem, "%s: %s", f, c.what)
			require.Contains(t, calls[0].Problem.Why, c.want, "%s: %s", f, c.what)
			refused := calls[0].Refused()
			require.Equal(t, tool.StatusInvalid, refused.Status)
			// The model reads that the call did not run, regardless of the outcome that the program gives.
			told := results(t, a, calls, done(tool.Text("all is well")))
			require.NotContains(t, told, "all is well")
			require.Contains(t, told, "Not a valid call: ")
			require.Contains(t, told, map[Format]string{Anthropic: `"is_error":true`, Gemini: `"error":`, Bedrock: `"status":"error"`}[f])
		}
	}
}

func TestArgumentsThatAreATextMayBeAnything(t *testing.T) {
	for _, f := range []Format{OpenAIChat, OpenAIResponses} {
		for args, want := range map[string]string{
			`""`: "its arguments are empty", `" \n"`: "its arguments are empty", `"{\"city\":"`: "a text that holds no JSON",
			`"nonsense"`: "a text that holds no JSON", `{"city":"x"}`: "its arguments are no text", `"\ud800"`: "half a character",
			`"{} {}"`: "a text that holds no JSON",
		} {
			calls := read(t, adapter(t, f), turnOf(f, [3]string{"1", "weather", args}))
			require.NotNil(t, calls[0].Problem, args)
			require.Contains(t, calls[0].Problem.Why, want, args)
		}
	}
}

func TestCallsOfOneIDAreAllRefused(t *testing.T) {
	for _, f := range Formats() {
		args := carriedArgs(f, `{"city":"x"}`)
		calls := read(t, adapter(t, f), turnOf(f, [3]string{"a", "weather", args}, [3]string{"b", "weather", args}, [3]string{"a", "weather", args}))
		require.Len(t, calls, 3)
		require.Contains(t, calls[0].Problem.Why, "same id")
		require.Nil(t, calls[1].Problem)
		require.Contains(t, calls[2].Problem.Why, "same id")
	}
}

func TestCallsWithoutIDsAreAnsweredByNameAndOrder(t *testing.T) {
	for _, f := range []Format{Gemini, Ollama} {
		args := carriedArgs(f, `{"city":"x"}`)
		a := adapter(t, f)
		calls := read(t, a, turnOf(f, [3]string{"-", "weather", args}, [3]string{"-", "weather", args}))
		told := results(t, a, calls, done(tool.Text("first")), done(tool.Text("second")))
		require.NotContains(t, told, `"id"`)
		require.NotContains(t, told, `"tool_call_id"`)
		require.Less(t, strings.Index(told, "first"), strings.Index(told, "second"))
		require.Equal(t, 2, strings.Count(told, `name":"weather"`))
	}
}

// ended is a response whose turn ended for a reason.
func ended(f Format, turn, reason string) string {
	why := fmt.Sprintf("%q", reason)
	return map[Format]string{
		OpenAIChat:      `{"choices":[{"message":` + turn + `,"finish_reason":` + why + `}]}`,
		OpenAIResponses: `{"output":` + turn + `,"status":"incomplete","incomplete_details":{"reason":` + why + `}}`,
		Anthropic:       strings.TrimSuffix(turn, "}") + `,"stop_reason":` + why + `}`,
		Gemini:          `{"candidates":[{"content":` + turn + `,"finishReason":` + why + `}]}`,
		Bedrock:         `{"output":{"message":` + turn + `},"stopReason":` + why + `}`,
		Ollama:          `{"message":` + turn + `,"done_reason":` + why + `}`,
	}[f]
}

func TestATurnThatWasCutOffDoesNotRunItsLastCall(t *testing.T) {
	limits := map[Format]string{
		OpenAIChat: "length", OpenAIResponses: "max_output_tokens", Anthropic: "max_tokens", Gemini: "MAX_TOKENS", Bedrock: "max_tokens", Ollama: "length",
	}
	for _, f := range Formats() {
		args := carriedArgs(f, `{"city":"x"}`)
		turn := turnOf(f, [3]string{"a", "weather", args}, [3]string{"b", "weather", args})
		calls := read(t, adapter(t, f), ended(f, turn, limits[f]))
		require.Nil(t, calls[0].Problem, f)
		require.NotNil(t, calls[1].Problem, f)
		require.Contains(t, calls[1].Problem.Why, "its limit of length")
		for _, c := range read(t, adapter(t, f), ended(f, turn, "some_new_filter")) {
			require.NotNil(t, c.Problem, f)
			require.Contains(t, c.Problem.Why, "nothing of it was run")
		}
	}
	item := strings.Replace(turnOf(OpenAIResponses, [3]string{"a", "weather", `"{\"city\":\"x\"}"`}), `"name"`, `"status":"incomplete","name"`, 1)
	require.Contains(t, read(t, adapter(t, OpenAIResponses), item)[0].Problem.Why, "its limit of length")
}

func TestWhatIsNoTurnIsAnError(t *testing.T) {
	for _, f := range Formats() {
		for _, raw := range []string{
			``, `null`, `1`, `{`, `{}`, `{"error":{"message":"overloaded"}}`, `{"role":"user","content":"x"}`, `{} {}`, `"x"`,
			`{"role":"assistant","role":"assistant","content":[],"tool_calls":[],"output":[],"parts":[]}`,
			`{"choices":[],"candidates":[],"output":{},"message":[]}`, `{"choices":[{},{}],"candidates":[{},{}],"output":1,"message":1}`,
			`{"choices":[1],"candidates":[1],"output":{"message":1},"message":{}}`, `{"choices":[{}],"candidates":[{"content":1}],"output":{"message":{}},"message":{"role":"user"}}`,
			`{"role":"assistant","content":1,"tool_calls":1,"parts":1}`,
		} {
			calls, err := adapter(t, f).Calls(json.RawMessage(raw))
			require.ErrorContains(t, err, "no turn of the format "+string(f), "%s: %s", f, raw)
			require.Empty(t, calls)
		}
	}
	for f, raw := range map[Format]string{
		OpenAIResponses: `[1]`, Anthropic: `{"role":"assistant","content":[1]}`, Gemini: `{"parts":[1]}`, Bedrock: `{"role":"assistant","content":[1]}`,
	} {
		_, err := adapter(t, f).Calls(json.RawMessage(raw))
		require.ErrorContains(t, err, "not an object", f)
	}
}

func TestATurnMayHaveNoCalls(t *testing.T) {
	for f, raw := range map[Format]string{
		OpenAIChat: `{"role":"assistant","content":"hi","tool_calls":null}`, OpenAIResponses: `{"output":[{"type":"message"}],"status":"completed"}`,
		Anthropic: `{"role":"assistant","content":"hi"}`, Gemini: `{"candidates":[{"finishReason":"SAFETY"}]}`,
		Bedrock: `{"role":"assistant","content":[{"text":"hi"}]}`, Ollama: `{"role":"assistant","content":"hi"}`,
	} {
		require.Empty(t, read(t, adapter(t, f), raw), f)
		messages, err := adapter(t, f).Results(nil, nil)
		require.NoError(t, err)
		require.Empty(t, messages)
	}
}

// A call whose form is broken is one call that the model is told of, not the end of the turn.
func TestACallOfNoFormIsOneProblem(t *testing.T) {
	for f, raw := range map[Format]string{
		OpenAIChat: `{"role":"assistant","tool_calls":[1,{"id":"a","type":"function","function":[]}]}`,
		Gemini:     `{"parts":[{"functionCall":1},{"functionCall":{"name":"weather","name":"say"}}]}`,
		Bedrock:    `{"role":"assistant","content":[{"toolUse":1},{"toolUse":[]}]}`,
		Ollama:     `{"role":"assistant","tool_calls":[1,{"function":1}]}`,
	} {
		calls := read(t, adapter(t, f), raw)
		require.Len(t, calls, 2, f)
		require.NotNil(t, calls[0].Problem)
		require.NotNil(t, calls[1].Problem)
	}
}

func TestServerToolsOfBedrockAreLeftAlone(t *testing.T) {
	raw := `{"role":"assistant","content":[{"toolUse":{"type":"server_tool_use","toolUseId":"a","name":"weather","input":{}}}]}`
	require.Empty(t, read(t, adapter(t, Bedrock), raw))
}
