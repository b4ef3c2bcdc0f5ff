package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainClient speaks the newest revision over HTTP, with what it is given. The SDK's own does not know tasks.
type plainClient struct {
	t          *testing.T
	url, token string
	caps       string // JSON
	headers    map[string]string
	ids        *atomic.Int64
}

const (
	knowsTasks  = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	knowsBoth   = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	knowsNoTask = `{}`
)

func (h *serverSetup) plain(url, token, caps string) plainClient {
	return plainClient{t: h.t, url: url, token: token, caps: caps, ids: &atomic.Int64{}}
}

// reply is what a request is answered with.
type reply struct {
	Result wireTask   `json:"result"`
	Error  *wireError `json:"error"`
	text   string
	status int
}

type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// wireTask is any answer about a task, and one to a call.
type wireTask struct {
	ResultType    string                     `json:"resultType"`
	TaskID        string                     `json:"taskId"`
	Status        string                     `json:"status"`
	StatusMessage string                     `json:"statusMessage"`
	CreatedAt     string                     `json:"createdAt"`
	TTL           *int64                     `json:"ttlMs"`
	Inputs        map[string]json.RawMessage `json:"inputRequests"`
	State         string                     `json:"requestState"`
	Error         *wireError                 `json:"error"`
	IsError       bool                       `json:"isError"`
	Meta          map[string]any             `json:"_meta"`
	Content       []struct {
		Text string `json:"text"`
	} `json:"content"`
	Result *wireTask `json:"result"`
}

func (w wireTask) hasEnded() bool {
	return w.Status == "completed" || w.Status == "failed" || w.Status == "cancelled"
}

func (c plainClient) request(ctx context.Context, method string, params map[string]any) (*http.Request, error) {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modern,
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "plain", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": json.RawMessage(c.caps),
	}
	all := map[string]any{"_meta": meta}
	for name, value := range params {
		if more, ok := value.(map[string]any); ok && name == "_meta" {
			maps.Copy(meta, more)
			continue
		}
		all[name] = value
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.ids.Add(1), "method": method, "params": all})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", modern)
	r.Header.Set("Mcp-Method", method)
	if name, ok := params["name"].(string); ok {
		r.Header.Set("Mcp-Name", name)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	return r, nil
}

// ask sends a request and reads its response, as JSON or from an event stream.
func (c plainClient) ask(ctx context.Context, method string, params map[string]any) (out reply, err error) {
	r, err := c.request(ctx, method, params)
	if err != nil {
		return out, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	out.status = resp.StatusCode
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := strings.TrimPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(text, "{") || strings.Contains(text, `"method":"notifications/`) {
			continue
		}
		out.text = text
		return out, json.Unmarshal([]byte(text), &out)
	}
	return out, lines.Err()
}

func (c plainClient) must(method string, params map[string]any) reply {
	c.t.Helper()
	r, err := c.ask(c.t.Context(), method, params)
	require.NoError(c.t, err)
	return r
}

// call calls a tool.
func (c plainClient) call(name string, args map[string]any) wireTask {
	c.t.Helper()
	r := c.must("tools/call", map[string]any{"name": name, "arguments": args})
	require.Nil(c.t, r.Error, r.text)
	return r.Result
}

// task calls a tool, whose call becomes a task.
func (c plainClient) task(name string, args map[string]any) string {
	c.t.Helper()
	r := c.call(name, args)
	require.Equal(c.t, "task", r.ResultType)
	require.NotEmpty(c.t, r.TaskID)
	require.Empty(c.t, r.Inputs)
	return r.TaskID
}

func (c plainClient) get(id string) wireTask {
	c.t.Helper()
	r := c.must("tasks/get", map[string]any{"taskId": id})
	require.Nil(c.t, r.Error, r.text)
	require.Equal(c.t, "complete", r.Result.ResultType)
	require.Equal(c.t, id, r.Result.TaskID)
	return r.Result
}

// until asks until a task is as it should be.
func (c plainClient) until(id string, is func(wireTask) bool) wireTask {
	c.t.Helper()
	for {
		if r := c.get(id); is(r) {
			return r
		}
	}
}

func (c plainClient) update(id string, said map[string]any) *wireError {
	c.t.Helper()
	r := c.must("tasks/update", map[string]any{"taskId": id, "inputResponses": said})
	if r.Error == nil {
		require.JSONEq(c.t, `"complete"`, `"`+r.Result.ResultType+`"`)
		require.Empty(c.t, r.Result.Status)
	}
	return r.Error
}

func (c plainClient) cancel(id string) {
	c.t.Helper()
	r := c.must("tasks/cancel", map[string]any{"taskId": id})
	require.Nil(c.t, r.Error, r.text)
	require.Equal(c.t, "complete", r.Result.ResultType)
	require.Empty(c.t, r.Result.Status)
}
