package wire

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

const (
	sayObject     = `{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}`
	weatherStrict = `{"type":"object","properties":{"city":{"type":"string","description":"(minLength: 1)"},
		"days":{"type":["integer","null"],"minimum":1,"maximum":9}},"required":["city","days"],"additionalProperties":false}`
	weatherClaude = `{"type":"object","properties":{"city":{"type":"string","description":"(minLength: 1)"},
		"days":{"type":"integer","description":"(maximum: 9; minimum: 1)"}},"required":["city"],"additionalProperties":false}`
	weatherGemini = `{"type":"object","properties":{"city":{"type":"string","description":"(minLength: 1)"},
		"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city"],"additionalProperties":false}`
	weatherOllama = `{"type":"object","properties":{"city":{"type":"string","description":"(minLength: 1)"},
		"days":{"type":"integer","description":"(maximum: 9; minimum: 1)"}},"required":["city"]}`
	sayOllama = `{"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}`
)

// The shapes are those of the providers' references.
var goldens = map[Format]struct {
	plain, strict string                // definitions
	choices       map[ToolChoice]string // the request without its definitions; "" where it is refused
	body, alone   string                // a turn of two calls, as a response and as the history has it
	ids           []string
	results       string // of a text and a denial
	structured    string // of structured output
	image         string // of a text and an image
}{
	OpenAIChat: {
		plain: `[{"type":"function","function":{"name":"weather","description":"Tells the weather.","parameters":` + weather + `}},
			{"type":"function","function":{"name":"say","parameters":` + sayObject + `}}]`,
		strict: `[{"type":"function","function":{"name":"weather","description":"Tells the weather.","strict":true,"parameters":` + weatherStrict + `}},
			{"type":"function","function":{"name":"say","strict":true,"parameters":` + sayObject + `}}]`,
		choices: map[ToolChoice]string{
			{}:                                `{}`,
			{Mode: Auto}:                      `{"tool_choice":"auto"}`,
			{Mode: Required}:                  `{"tool_choice":"required"}`,
			{Mode: None}:                      `{"tool_choice":"none"}`,
			{Mode: Required, Tool: "weather"}: `{"tool_choice":{"type":"function","function":{"name":"weather"}}}`,
			{Single: true}:                    `{"parallel_tool_calls":false}`,
		},
		body: `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"message":` + chatMessage + `}],
			"usage":{"total_tokens":9}}`,
		alone: chatMessage,
		ids:   []string{"call_1", "call_2"},
		results: `[{"role":"tool","tool_call_id":"call_1","content":"sunny"},
			{"role":"tool","tool_call_id":"call_2","content":"Error: Denied: not here. Repeating the call cannot help."}]`,
		structured: `[{"role":"tool","tool_call_id":"call_1","content":"{\"t\":1.50}"}]`,
		image:      `[{"role":"tool","tool_call_id":"call_1","content":"map\n[image/png, 3 bytes, which cannot be shown here]"}]`,
	},
	OpenAIResponses: {
		plain: `[{"type":"function","name":"weather","description":"Tells the weather.","parameters":` + weather + `,"strict":false},
			{"type":"function","name":"say","parameters":` + sayObject + `,"strict":false}]`,
		strict: `[{"type":"function","name":"weather","description":"Tells the weather.","parameters":` + weatherStrict + `,"strict":true},
			{"type":"function","name":"say","parameters":` + sayObject + `,"strict":true}]`,
		choices: map[ToolChoice]string{
			{}:                                `{}`,
			{Mode: Auto, Single: true}:        `{"tool_choice":"auto","parallel_tool_calls":false}`,
			{Mode: Required}:                  `{"tool_choice":"required"}`,
			{Mode: None}:                      `{"tool_choice":"none"}`,
			{Mode: Required, Tool: "weather"}: `{"tool_choice":{"type":"function","name":"weather"}}`,
		},
		body:  `{"id":"resp_1","object":"response","status":"completed","incomplete_details":null,"output":` + responsesItems + `}`,
		alone: responsesItems,
		ids:   []string{"call_1", "call_2"},
		results: `[{"type":"function_call_output","call_id":"call_1","output":"sunny"},
			{"type":"function_call_output","call_id":"call_2","output":"Error: Denied: not here. Repeating the call cannot help."}]`,
		structured: `[{"type":"function_call_output","call_id":"call_1","output":"{\"t\":1.50}"}]`,
		image: `[{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"map"},
			{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]}]`,
	},
	Anthropic: {
		plain: `[{"name":"weather","description":"Tells the weather.","input_schema":` + weather + `},{"name":"say","input_schema":` + sayObject + `}]`,
		strict: `[{"name":"weather","description":"Tells the weather.","input_schema":` + weatherClaude + `,"strict":true},
			{"name":"say","input_schema":` + sayObject + `,"strict":true}]`,
		choices: map[ToolChoice]string{
			{}:               `{}`,
			{Mode: Auto}:     `{"tool_choice":{"type":"auto"}}`,
			{Mode: Required}: `{"tool_choice":{"type":"any"}}`,
			{Mode: None}:     `{"tool_choice":{"type":"none"}}`,
			{Mode: Required, Tool: "weather", Single: true}: `{"tool_choice":{"type":"tool","name":"weather","disable_parallel_tool_use":true}}`,
			{Single: true}: `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`,
		},
		body:  `{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":null,"content":` + anthropicContent + `}`,
		alone: `{"role":"assistant","content":` + anthropicContent + `}`,
		ids:   []string{"toolu_1", "toolu_2"},
		results: `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"sunny"}]},
			{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"Denied: not here. Repeating the call cannot help."}]}]}]`,
		structured: `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"t\":1.50}"}]}]}]`,
		image: `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"map"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}}]}]}]`,
	},
	Gemini: {
		plain: `[{"functionDeclarations":[{"name":"weather","description":"Tells the weather.","parametersJsonSchema":` + weatherGemini + `},
			{"name":"say","parametersJsonSchema":` + sayObject + `}]}]`,
		choices: map[ToolChoice]string{
			{}:                                `{}`,
			{Mode: Auto}:                      `{"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}}`,
			{Mode: Required}:                  `{"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`,
			{Mode: None}:                      `{"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}`,
			{Mode: Required, Tool: "weather"}: `{"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["weather"]}}}`,
			{Single: true}:                    "",
		},
		body:  `{"candidates":[{"content":` + geminiContent + `,"finishReason":"STOP","index":0}],"usageMetadata":{"totalTokenCount":9}}`,
		alone: geminiContent,
		ids:   []string{"", "f2"},
		results: `[{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":"sunny"}}},
			{"functionResponse":{"id":"f2","name":"say","response":{"error":"Denied: not here. Repeating the call cannot help."}}}]}]`,
		structured: `[{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":{"t":1.5}}}}]}]`,
		image: `[{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":"map"},
			"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}}]}]`,
	},
	Bedrock: {
		plain: `[{"toolSpec":{"name":"weather","description":"Tells the weather.","inputSchema":{"json":` + weather + `}}},
			{"toolSpec":{"name":"say","inputSchema":{"json":` + sayObject + `}}}]`,
		strict: `[{"toolSpec":{"name":"weather","description":"Tells the weather.","strict":true,"inputSchema":{"json":` + weatherClaude + `}}},
			{"toolSpec":{"name":"say","strict":true,"inputSchema":{"json":` + sayObject + `}}}]`,
		choices: map[ToolChoice]string{
			{}:                                `{"toolConfig":{}}`,
			{Mode: Auto}:                      `{"toolConfig":{"toolChoice":{"auto":{}}}}`,
			{Mode: Required}:                  `{"toolConfig":{"toolChoice":{"any":{}}}}`,
			{Mode: Required, Tool: "weather"}: `{"toolConfig":{"toolChoice":{"tool":{"name":"weather"}}}}`,
			{Mode: None}:                      "",
			{Single: true}:                    "",
		},
		body:  `{"output":{"message":` + bedrockMessage + `},"stopReason":"tool_use","usage":{"totalTokens":9}}`,
		alone: bedrockMessage,
		ids:   []string{"tooluse_1", "tooluse_2"},
		results: `[{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_1","content":[{"text":"sunny"}]}},
			{"toolResult":{"toolUseId":"tooluse_2","status":"error","content":[{"text":"Denied: not here. Repeating the call cannot help."}]}}]}]`,
		structured: `[{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_1","content":[{"json":{"t":1.5}}]}}]}]`,
		image: `[{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_1","content":[{"text":"map"},
			{"image":{"format":"png","source":{"bytes":"cG5n"}}}]}}]}]`,
	},
	Ollama: {
		plain: `[{"type":"function","function":{"name":"weather","description":"Tells the weather.","parameters":` + weatherOllama + `}},
			{"type":"function","function":{"name":"say","parameters":` + sayOllama + `}}]`,
		choices: map[ToolChoice]string{
			{}: `{}`, {Mode: Auto}: `{}`,
			{Mode: Required}: "", {Mode: None}: "", {Mode: Required, Tool: "weather"}: "", {Single: true}: "",
		},
		body:  `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":` + ollamaMessage + `,"done_reason":"stop","done":true}`,
		alone: ollamaMessage,
		ids:   []string{"", "call_b"},
		results: `[{"role":"tool","tool_name":"weather","content":"sunny"},
			{"role":"tool","tool_name":"say","tool_call_id":"call_b","content":"Error: Denied: not here. Repeating the call cannot help."}]`,
		structured: `[{"role":"tool","tool_name":"weather","content":"{\"t\":1.50}"}]`,
		image:      `[{"role":"tool","tool_name":"weather","content":"map\n[image/png, 3 bytes, which cannot be shown here]"}]`,
	},
}

// Each turn has two calls, and things that are no calls of ours.
const (
	chatMessage = `{"role":"assistant","content":null,"refusal":null,"tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bern\",\"days\":12345678901234567890}"}},
		{"id":"call_x","type":"custom","custom":{"name":"weather","input":"x"}},
		{"id":"call_2","type":"function","function":{"name":"say","arguments":"{\"input\":\"hi\"}"}}]}`
	responsesItems = `[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"\ud800"},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Bern\",\"days\":12345678901234567890}",
			"status":"completed","namespace":"n","caller":{"type":"program"}},
		{"type":"web_search_call","id":"ws_1","status":"completed"},
		{"type":"function_call","id":"fc_2","call_id":"call_2","name":"say","arguments":"{\"input\":\"hi\"}"}]`
	anthropicContent = `[{"type":"thinking","thinking":"…","signature":"c2ln"},{"type":"text","text":"I look."},
		{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},
		{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Bern","days":12345678901234567890},"caller":{"type":"direct"}},
		{"type":"tool_use","id":"toolu_2","name":"say","input":{"input":"hi"}}]`
	geminiContent = `{"role":"model","parts":[{"text":"I look.","thought":true},
		{"functionCall":{"name":"weather","args":{"city":"Bern","days":12345678901234567890}},"thoughtSignature":"c2ln"},
		{"functionCall":{"id":"f2","name":"say","args":{"input":"hi"}}}]}`
	bedrockMessage = `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"…","signature":"c2ln"}}},{"text":"I look."},
		{"toolUse":{"toolUseId":"tooluse_1","name":"weather","input":{"city":"Bern","days":12345678901234567890}}},
		{"toolUse":{"toolUseId":"tooluse_2","name":"say","input":{"input":"hi"}}}]}`
	ollamaMessage = `{"role":"assistant","content":"","thinking":"…","tool_calls":[
		{"function":{"index":0,"name":"weather","arguments":{"city":"Bern","days":12345678901234567890}}},
		{"id":"call_b","function":{"index":1,"name":"say","arguments":{"input":"hi"}}}]}`
)

func TestDefinitionsHaveTheProvidersShape(t *testing.T) {
	for _, f := range Formats() {
		t.Run(string(f), func(t *testing.T) {
			a := adapter(t, f)
			require.Equal(t, f, a.Format())
			same(t, goldens[f].plain, definitions(t, a))
			want := goldens[f].strict
			if want == "" {
				want = goldens[f].plain
			}
			same(t, want, definitions(t, a.Strict()))
			same(t, goldens[f].plain, definitions(t, a)) // Strict changed another
		})
	}
}

func TestChoiceHasTheProvidersShapeOrIsRefused(t *testing.T) {
	for _, f := range Formats() {
		for choice, want := range goldens[f].choices {
			got, err := adapter(t, f).Request(choice)
			if want == "" {
				require.ErrorContains(t, err, "the format "+string(f)+" cannot ask for", "%v", choice)
				continue
			}
			require.NoError(t, err)
			list := "tools"
			if f == Bedrock {
				list = "toolConfig"
				var config map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(got[list], &config))
				same(t, goldens[f].plain, string(config["tools"]))
				delete(config, "tools")
				got[list], err = json.Marshal(config)
				require.NoError(t, err)
			} else {
				same(t, goldens[f].plain, string(got[list]))
				delete(got, list)
			}
			raw, err := json.Marshal(got)
			require.NoError(t, err)
			same(t, want, string(raw))
		}
	}
}

func TestCallsAreReadFromAResponseAndFromATurn(t *testing.T) {
	for _, f := range Formats() {
		for _, raw := range []string{goldens[f].body, goldens[f].alone} {
			calls := read(t, adapter(t, f), raw)
			require.Len(t, calls, 2)
			for i, name := range []string{"weather", "say"} {
				require.Nil(t, calls[i].Problem)
				require.Equal(t, name, calls[i].Name)
				require.Equal(t, goldens[f].ids[i], calls[i].ID)
			}
			same(t, `{"city":"Bern","days":12345678901234567890}`, string(calls[0].Input)) // no digit is lost
			require.Equal(t, `"hi"`, string(calls[1].Input))
		}
	}
}

func TestResultsHaveTheProvidersShape(t *testing.T) {
	for _, f := range Formats() {
		t.Run(string(f), func(t *testing.T) {
			a := adapter(t, f)
			calls := read(t, a, goldens[f].body)
			same(t, goldens[f].results, results(t, a, calls, done(tool.Text("sunny")), denied()))
			structured := tool.Result{JSON: json.RawMessage(`{"t":1.50}`)}
			same(t, goldens[f].structured, results(t, a, calls[:1], done(structured)))
			image := tool.Result{Text: "map", Parts: []tool.Part{{MediaType: "image/png", Data: []byte("png")}}}
			same(t, goldens[f].image, results(t, a, calls[:1], done(image)))
		})
	}
}
