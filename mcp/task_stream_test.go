package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
)

// notification is a notification.
type notification struct {
	Method string `json:"method"`
	Params struct {
		wireTask
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
			Tools   bool     `json:"toolsListChanged"`
		} `json:"notifications"`
	} `json:"params"`
}

func (n notification) subscription() any {
	return n.Params.Meta["io.modelcontextprotocol/subscriptionId"]
}

// listen opens a stream, and returns what reads the next notification from it.
func (c plainClient) listen(wants map[string]any) (next func() notification) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	r, err := c.request(ctx, "subscriptions/listen", map[string]any{"notifications": wants})
	require.NoError(c.t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(c.t, err)
	require.Equal(c.t, "text/event-stream", resp.Header.Get("Content-Type"))
	c.t.Cleanup(func() {
		stop()
		_ = resp.Body.Close()
	})
	return reads(c.t, resp.Body)
}

func reads(t *testing.T, from io.Reader) func() notification {
	lines := bufio.NewScanner(from)
	return func() (n notification) {
		t.Helper()
		for lines.Scan() {
			if text := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(text, "{") {
				require.NoError(t, json.Unmarshal([]byte(text), &n), text)
				return n
			}
		}
		require.NoError(t, lines.Err())
		t.Fatal("the stream has ended")
		return n
	}
}

// TestTaskNotifications: a client that listens is told how its tasks stand, as tasks/get would tell it, at first and whenever that
// changes. Of tasks that are not there, or another session's, it is told nothing.
func TestTaskNotifications(t *testing.T) {
	b := newWorkbench(t, mcp.Options{Tasks: []string{"forms"}})
	c, other := b.as("coder", knowsBoth), b.as("somebody else", knowsBoth)
	slow, theirs := c.task("slow", label("one")), other.task("slow", label("theirs"))
	next := c.listen(map[string]any{"taskIds": []string{slow, theirs, "c_none"}, "toolsListChanged": true})
	ack := next()
	require.Equal(t, "notifications/subscriptions/acknowledged", ack.Method)
	require.Equal(t, []string{slow}, ack.Params.Notifications.TaskIDs)
	require.True(t, ack.Params.Notifications.Tools, "and of the rest that it wants")
	is := next()
	require.Equal(t, "notifications/tasks", is.Method)
	require.Equal(t, ack.subscription(), is.subscription())
	require.Equal(t, "working", is.Params.Status)
	b.srv.ToolsChanged()
	require.Equal(t, "notifications/tools/list_changed", next().Method)
	<-b.entered
	<-b.entered
	c.cancel(slow)
	is = next()
	require.Equal(t, slow, is.Params.TaskID)
	require.Equal(t, "cancelled", is.Params.Status)
	require.Empty(t, is.Params.ResultType)

	forms := c.task("forms", nil)
	next = c.listen(map[string]any{"taskIds": []string{forms}})
	require.Equal(t, []string{forms}, next().Params.Notifications.TaskIDs)
	for n := next(); ; n = next() {
		require.Equal(t, forms, n.Params.TaskID)
		for key := range n.Params.Inputs {
			require.Equal(t, "input_required", n.Params.Status)
			require.Nil(t, c.update(forms, map[string]any{key: accept("1")}))
		}
		if n.Params.hasEnded() {
			require.Equal(t, "a=1 b=1 a=1 ", n.Params.Result.Content[0].Text)
			break
		}
	}
}

// TestTaskNotificationFromElsewhere: who answers a call that waits may be another process; a client that listens is told.
func TestTaskNotificationFromElsewhere(t *testing.T) {
	b := newWorkbench(t, mcp.Options{OnAsk: mcp.ApproveOutOfBand})
	c := b.as("coder", knowsBoth)
	id := c.task("sure", label("one"))
	next := c.listen(map[string]any{"taskIds": []string{id}})
	next()
	n := next()
	require.Equal(t, "working", n.Params.Status)
	require.Equal(t, "waits for approval by a person", n.Params.StatusMessage)
	require.NoError(t, b.rt.Answer(t.Context(), agent.Answer{Call: id, By: "boss"}))
	n = next()
	require.Equal(t, "completed", n.Params.Status)
	require.True(t, n.Params.Result.IsError, "it was refused")
}

// TestTaskNotificationsRefused checks that the server names the extension that
// a client does not declare. It rejects a subscription to more than 16 tasks.
func TestTaskNotificationsRefused(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	wants := func(n int) map[string]any {
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprintf("c_%d", i))
		}
		return map[string]any{"notifications": map[string]any{"taskIds": ids}}
	}
	r := b.as("coder", knowsNoTask).must("subscriptions/listen", wants(1))
	require.Equal(t, -32021, r.Error.Code)
	require.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(r.Error.Data))
	r = b.as("coder", knowsTasks).must("subscriptions/listen", wants(17))
	require.Equal(t, -32602, r.Error.Code)
	r = b.as("coder", knowsTasks).must("subscriptions/listen", wants(16))
	require.Nil(t, r.Error, "none of them is there, so there is nothing to wait for")
}

// TestTaskNotificationsPipe: they come over standard streams too.
func TestTaskNotificationsPipe(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	in, write := io.Pipe()
	read, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- b.srv.RunIO(context.WithoutCancel(t.Context()), in, out, b.session("coder")) }()
	c := plainClient{caps: knowsTasks}
	lines := bufio.NewReader(read)
	send := func(id int, method, params string) {
		_, err := fmt.Fprintf(write, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}}}`+"\n",
			id, method, params, modern, c.caps)
		require.NoError(t, err)
	}
	receive := func(into any) {
		line, err := lines.ReadBytes('\n')
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(line, into), string(line))
	}
	var made reply
	send(1, "tools/call", `"name":"slow","arguments":{"label":"one"}`)
	receive(&made)
	require.Equal(t, "task", made.Result.ResultType)
	<-b.entered
	var ack, is, over notification
	send(2, "subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, made.Result.TaskID))
	receive(&ack)
	require.Equal(t, []string{made.Result.TaskID}, ack.Params.Notifications.TaskIDs)
	receive(&is)
	require.Equal(t, "working", is.Params.Status)
	b.release <- struct{}{}
	receive(&over)
	require.Equal(t, "completed", over.Params.Status)
	require.Equal(t, "did one", over.Params.Result.Content[0].Text)
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
	<-ended //nolint:errcheck // it says that the client left
}
