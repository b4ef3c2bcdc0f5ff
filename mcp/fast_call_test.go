package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// someOf draws one of some texts, most often the first.
func someOf(t *rapid.T, what string, usual string, others ...string) string {
	if rapid.IntRange(0, 11).Draw(t, "usual "+what) > 0 {
		return usual
	}
	return rapid.SampledFrom(others).Draw(t, what)
}

// drawnCall is the text of a request, which is a call more often than not, and the method and headers that come with it.
func drawnCall(t *rapid.T) (method, body string, headers http.Header) {
	method = someOf(t, "HTTP method", http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions)
	// Each answers the same each time.
	name := someOf(t, "name", "upper", "fails", "parts", "others", "panics", "file_write", "nosuch", "txn_preview", "txn_commit", "")
	// Not among them: a number beyond what a float64 holds, for which the SDK says that the name is missing.
	args := someOf(t, "arguments", `{"input":"<a>\u2028é"}`, `{}`, `null`, `7`, `{"input":1}`, `{"input":"a","input":"b"}`, `{"INPUT":"a"}`, `{"path":"../x","content":""}`, `{"input":"\ud800"}`)
	meta := []string{`"io.modelcontextprotocol/protocolVersion":` + someOf(t, "version", `"2026-07-28"`, `"2025-11-25"`, `"2099-01-01"`, `1`)}
	maybe := func(what string, values ...string) {
		if v := rapid.SampledFrom(append(values, "")).Draw(t, what); v != "" {
			meta = append(meta, fmt.Sprintf("%q:%s", what, v))
		}
	}
	maybe("io.modelcontextprotocol/clientCapabilities", `{}`, `{}`, `{"roots":{}}`, `{"elicitation":{"form":{}}}`, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, `{"roots":7}`, `null`, `[]`)
	maybe("io.modelcontextprotocol/clientInfo", `{"name":"x","version":"1"}`, `{"name":"x","version":"1"}`, `7`, `null`)
	if rapid.IntRange(0, 4).Draw(t, "more meta") == 0 {
		maybe("progressToken", `1`, `"p"`, `{}`)
		maybe("io.modelcontextprotocol/logLevel", `"info"`, `"loud"`, `7`)
		maybe("remit.dev/txn", `"t_none"`, `""`, `7`, `null`)
		maybe("remit.dev/call-id", `""`, `7`, `null`)
		maybe("traceparent", `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `7`)
		maybe("io.modelcontextprotocol/serverInfo", `{"name":"me"}`)
	}
	params := []string{fmt.Sprintf(`"name":%q`, name), `"arguments":` + args, `"_meta":{` + strings.Join(meta, ",") + `}`}
	if more := someOf(t, "more params", "", `"requestState":"x"`, `"requestState":""`, `"inputResponses":{}`, `"name":"fails"`, `"Name":"fails"`, `"future":1`); more != "" {
		params = append(params, more)
	}
	if rapid.IntRange(0, 9).Draw(t, "fewer params") == 0 {
		params = params[1:]
	}
	members := []string{
		`"jsonrpc":` + someOf(t, "jsonrpc", `"2.0"`, `"1.0"`, `2.0`),
		`"id":` + someOf(t, "id", `1`, `"a\"<b"`, `""`, `1.0`, `1e2`, `-1`, `null`, `{}`, `9007199254740993`, `123456789012345`),
		`"method":` + someOf(t, "method", `"tools/call"`, `"tools/list"`, `"ping"`, `"nosuch"`, `7`),
		`"params":` + someOf(t, "params", "{"+strings.Join(rapid.Permutation(params).Draw(t, "order"), ",")+"}", `{}`, `null`, `[]`),
	}
	if more := someOf(t, "more members", "", `"id":2`, `"result":{}`, `"Method":"ping"`, `"extra":1`); more != "" {
		members = append(members, more)
	}
	body = "{" + strings.Join(rapid.Permutation(members).Draw(t, "order of members"), ",") + "}"
	body = someOf(t, "frame", body, " "+body+"\n", "["+body+"]", body+body, body[:len(body)-1], "\ufeff"+body)
	headers = http.Header{}
	for _, h := range []struct {
		name, usual string
		others      []string
	}{
		{"Content-Type", "application/json", []string{"application/json; charset=utf-8", "text/plain", ""}},
		{"Accept", plainAccept, []string{"application/json", "*/*", ""}},
		{"Mcp-Protocol-Version", modern, []string{legacy, "2099-01-01", ""}},
		{"Mcp-Method", "tools/call", []string{"tools/list", "nosuch", ""}},
		{"Mcp-Name", name, []string{"upper", "nosuch", " upper", ""}},
		{"Mcp-Session-Id", "", []string{"nosuch"}},
		{"Last-Event-Id", "", []string{"x_1"}},
	} {
		if v := someOf(t, h.name, h.usual, append(h.others, h.usual)...); v != "" {
			headers.Add(h.name, v)
		}
	}
	if rapid.IntRange(0, 19).Draw(t, "a header twice") == 0 {
		headers.Add(rapid.SampledFrom([]string{"Mcp-Name", "Mcp-Method", "Mcp-Protocol-Version"}).Draw(t, "which"), "upper")
	}
	return method, body, headers
}

const plainAccept = "application/json, text/event-stream"

var ids = regexp.MustCompile(`"(remit\.dev/(call|txn))":"[^"]+"|\b(call|txn) "?[a-z]+_[0-9A-Za-z]+`)

// answerTo is what a request is answered with, without what differs each time, and whether it came as an event.
func answerTo(t require.TestingT, method, url, token, body string, headers http.Header) (status int, message string, event bool) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header = headers.Clone()
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	event = res.Header.Get("Content-Type") == "text/event-stream"
	if event {
		events := strings.Split(strings.TrimSpace(string(data)), "\n")
		data = []byte(strings.TrimPrefix(events[len(events)-1], "data: "))
	}
	var v any
	if json.Unmarshal(data, &v) == nil {
		data, err = json.Marshal(v)
		require.NoError(t, err)
	}
	return res.StatusCode, ids.ReplaceAllString(string(data), "$1$3"), event
}

func newSeveral(t *testing.T) *serverSetup {
	fails, err := tool.Create("fails", "", func(context.Context, string) (string, error) { return "", errors.New("as <always>") }, tool.Pure())
	require.NoError(t, err)
	panics, err := tool.Create("panics", "", func(context.Context, string) (string, error) { panic("as always") }, tool.Pure())
	require.NoError(t, err)
	parts, err := tool.FromSpec(tool.Spec{
		Name: "parts", EffectClass: effect.Pure, Input: json.RawMessage(`{"type":"object"}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: "two <parts>", Parts: []tool.Part{{MediaType: "image/png", Data: []byte{1, 2}}, {MediaType: "x/y", Data: []byte{3}}}}, nil
		},
	})
	require.NoError(t, err)
	others, err := tool.FromSpec(tool.Spec{ // as of another server, which says whose it is
		Name: "others", EffectClass: effect.Pure, Input: json.RawMessage(`{"type":"object"}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return rawresult.Result(json.RawMessage(`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other","version":"1"}},"more":1}`), "", nil), nil
		},
	})
	require.NoError(t, err)
	return newServerSetup(t, mcp.Options{Version: "1"}, agent.Tools(fails, panics, parts, others))
}

// TestDirect: what is answered without the SDK's transport is answered as that would. The two ways differ by how Accept is
// written, which says the same.
func TestDirect(t *testing.T) {
	h := newSeveral(t)
	url, token := h.serve(mcp.HTTPOptions{}), h.session("coder").Token()
	direct, done := 0, 0
	alike := func(t *rapid.T) {
		method, body, headers := drawnCall(t)
		status, message, event := answerTo(t, method, url, token, body, headers)
		if !slices.Equal(headers["Accept"], []string{plainAccept}) {
			return
		}
		headers.Set("Accept", strings.ReplaceAll(plainAccept, " ", ""))
		wantStatus, want, wantEvent := answerTo(t, method, url, token, body, headers)
		require.Equal(t, want, message, "%s %s %v", method, body, headers)
		require.Equal(t, wantStatus, status, "%s %s %v", method, body, headers)
		if wantEvent && !event {
			direct++
		}
		if strings.Contains(message, `"result"`) && !event {
			done++
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // few of them are odd in one way only
			alike(t)
		}
	})
	require.Positive(t, direct, "the test must not pass because all goes to the SDK")
	require.Positive(t, done)
}

// TestDirectIsPlain: what wants to be told something before its answer, or is written in another way, is the SDK's.
func TestDirectIsPlain(t *testing.T) {
	h := newSeveral(t)
	url, token := h.serve(mcp.HTTPOptions{}), h.session("coder").Token()
	usual := func() http.Header {
		return http.Header{"Content-Type": {"application/json"}, "Accept": {plainAccept}, "Mcp-Protocol-Version": {modern}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"upper"}}
	}
	text := func(meta, more string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upper","arguments":{"input":"a"}` + more +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}` + meta + `}}}`
	}
	for _, tt := range []struct {
		name, body string
		event      bool
	}{
		{"plain", text("", ""), false},
		{"of a trace", text(`,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, ""), false},
		{"progress", text(`,"progressToken":1`, ""), true},
		{"log", text(`,"io.modelcontextprotocol/logLevel":"debug"`, ""), true},
		{"answers", text("", `,"inputResponses":{}`), true},
		{"of a later revision", text("", `,"future":{}`), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, message, event := answerTo(t, http.MethodPost, url, token, tt.body, usual())
			require.Equal(t, 200, status, message)
			require.Equal(t, tt.event, event, message)
			require.Contains(t, message, `"text":"A"`)
		})
	}
}

// TestDirectIsPosted: a request of another method calls nothing. Programs between take some of those for harmless, and send them twice.
func TestDirectIsPosted(t *testing.T) {
	h := newServerSetup(t, mcp.Options{})
	url, token := h.serve(mcp.HTTPOptions{}), h.session("coder").Token()
	headers := http.Header{"Content-Type": {"application/json"}, "Accept": {plainAccept}, "Mcp-Protocol-Version": {modern}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"file_write"}}
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"file_write","arguments":{"path":"a","content":"b"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		status, message, _ := answerTo(t, method, url, token, body, headers)
		require.GreaterOrEqual(t, status, 400, "%s %s", method, message)
		require.Equal(t, "(none)", h.file("a"), method)
	}
	status, message, _ := answerTo(t, http.MethodPost, url, token, body, headers)
	require.Equal(t, 200, status, message)
	require.Equal(t, "b", h.file("a"))
}
