package fakemodel_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/stretchr/testify/require"
)

// TestStandIn plays one scene in each format, as a client would: it asks, sends
// the result of the call, and reads the end.
func TestStandIn(t *testing.T) {
	for name, tc := range map[string]struct {
		path, first, second string
		call, end           string // parts of the two answers
	}{
		"anthropic": {
			path:   "/v1/messages",
			first:  `{"tools":[{}],"messages":[{"role":"user","content":"please work"}]`,
			second: `{"tools":[{}],"messages":[{"role":"user","content":[{"type":"text","text":"please work"}]},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","is_error":true,"content":[{"type":"text","text":"told 7"}]}]}]`,
			call:   `"name":"run"`, end: `"end_turn"`,
		},
		"responses": {
			path:   "/v1/responses",
			first:  `{"tools":[{}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"please work"}]}]`,
			second: `{"input":[{"type":"additional_tools"},{"type":"message","role":"user","content":"please work"},{"type":"function_call_output","call_id":"ID","output":"told 7"}]`,
			call:   `"type":"function_call"`, end: `"output_text","text":"done"`,
		},
		"chat": {
			path:   "/v1/chat/completions",
			first:  `{"tools":[{}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"please work"}]`,
			second: `{"tools":[{}],"messages":[{"role":"user","content":"please work"},{"role":"tool","tool_call_id":"ID","content":"told 7"}]`,
			call:   `"finish_reason":"tool_calls"`, end: `"finish_reason":"stop"`,
		},
		"gemini": {
			path:   "/v1beta/models/m:generateContent",
			first:  `{"tools":[{}],"contents":[{"role":"user","parts":[{"text":"please work"}]}]`,
			second: `{"tools":[{}],"contents":[{"role":"user","parts":[{"text":"please work"}]},{"role":"model","parts":[]},{"role":"user","parts":[{"functionResponse":{"id":"ID","response":{"error":"told 7"}}}]}]`,
			call:   `"functionCall"`, end: `"text":"done"`,
		},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " streams"}[stream], func(t *testing.T) {
				path, more := tc.path, "}"
				if stream {
					path, more = strings.Replace(path, ":generate", ":streamGenerate", 1), `,"stream":true}`
				}
				model := fakemodel.NewStandIn(fakemodel.Scene{Prompt: "please work", Turns: []fakemodel.Turn{
					{Text: "first", Calls: []fakemodel.Call{{Tool: "run", Args: `{"a":1}`}}},
				}})
				require.Contains(t, post(t, model, path, tc.first+more), tc.call)
				sent := model.Exchanges()
				require.Len(t, sent, 1)
				require.False(t, sent[0].Answered)
				end := post(t, model, path, strings.Replace(tc.second, "ID", sent[0].ID, 1)+more)
				require.Contains(t, end, tc.end)
				require.Equal(t, stream, strings.Contains(end, "data: "))
				require.Equal(t, "told 7", model.Exchanges()[0].Result)
				require.Len(t, model.Requests(), 2)
			})
		}
	}
}

// TestStandInWithoutScene: a request for a title, a prompt of no scene, and
// what it does not serve.
func TestStandInWithoutScene(t *testing.T) {
	model := fakemodel.NewStandIn(fakemodel.Scene{Prompt: "please work", Turns: []fakemodel.Turn{{Calls: []fakemodel.Call{{Tool: "run"}}}}})
	require.Contains(t, post(t, model, "/v1/messages", `{"messages":[{"role":"user","content":"please work"}]}`), "done", "it offers no tools")
	require.Contains(t, post(t, model, "/v1/messages", `{"tools":[{}],"messages":[{"role":"user","content":"else"}]}`), "done")
	require.Contains(t, post(t, model, "/v1/messages/count_tokens", `{}`), "input_tokens")
	require.Contains(t, post(t, model, "/elsewhere", `{}`), "does not serve")
	require.Contains(t, post(t, model, "/v1/messages", `{`), "error")
	require.Empty(t, model.Exchanges())
}

// TestStandInRefersToResults: arguments can hold what a result said.
func TestStandInRefersToResults(t *testing.T) {
	model := fakemodel.NewStandIn(fakemodel.Scene{Prompt: "please work", Turns: []fakemodel.Turn{
		{Calls: []fakemodel.Call{{Tool: "space/run"}}},
		{Calls: []fakemodel.Call{{Tool: "run", Args: `{"n":"{{told ([0-9]+)}}","s":"{{(told)}}","none":"{{(missing)}}"}`}, {Tool: "patch", Args: `"text"`}}},
	}})
	const first = `{"tools":[{}],"input":[{"role":"user","content":"please work"}`
	require.Contains(t, post(t, model, "/v1/responses", first+`]}`), `"namespace":"space"`)
	answer := post(t, model, "/v1/responses", first+`,{"type":"function_call_output","call_id":"`+model.Exchanges()[0].ID+`","output":"told 7"}]}`)
	require.Contains(t, answer, `"custom_tool_call"`)
	require.Equal(t, `{"n":7,"s":"told","none":"{{(missing)}}"}`, model.Exchanges()[1].Args)
}

func post(t *testing.T, h http.Handler, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	answer, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return string(answer)
}
