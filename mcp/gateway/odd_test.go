package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool"
)

// oddMessages are what a server should not send while it is at a call, each a line.
func oddMessages() (all []string) {
	n := 0
	for _, method := range []string{
		"ping", "roots/list", "elicitation/create", "sampling/createMessage", "completion/complete", "notifications/cancelled", "notifications/progress",
		"notifications/message", "notifications/resources/updated", "notifications/resources/list_changed", "notifications/tools/list_changed",
		"notifications/prompts/list_changed", "notifications/elicitation/complete", "notifications/subscriptions/acknowledged", "notifications/tasks", "nosuch",
	} {
		for _, params := range []string{
			``, `,"params":null`, `,"params":{}`, `,"params":{"_meta":null}`, `,"params":{"_meta":{"remit.dev/flight":7}}`,
			`,"params":{"uri":null,"progressToken":null,"requestId":null,"data":null}`, `,"params":{"mode":"url","requestedSchema":null,"messages":null}`,
		} {
			n++
			all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q%s}`, method, params), fmt.Sprintf(`{"jsonrpc":"2.0","id":"odd %d of ID","method":%q%s}`, n, method, params))
		}
	}
	return all
}

const doneAll = `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done all the same"}]}}`

// TestOddMessages: what a server by command says beside its answer ends nothing, and nobody takes it for something.
func TestOddMessages(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.scripted(oneTool, "tools/call "+strings.Join(append(oddMessages(), doneAll), " THEN "))}, `{"s": {"asks": ["elicitation", "sampling", "roots"], "tools": {"x": {"effectClass": "pure"}}}}`)
	for range 3 {
		out := h.call("s__x", tool.Args{})
		require.Equal(t, tool.StatusDone, out.Status, "%s %v", out.Text, out.Error)
		require.Contains(t, string(out.Output), "done all the same")
	}
	require.NotContains(t, h.log.String(), "panic")
}

// remoteTransport is a server by URL whose calls are answered by a function, which gets the id as JSON.
func remoteTransport(t *testing.T, call func(w http.ResponseWriter, id string, only *int)) string {
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Only *int } }
		}
		if data, err := io.ReadAll(r.Body); err == nil {
			_ = json.Unmarshal(data, &m) // one without a body has no method
		}
		id := func(text string) string { return strings.ReplaceAll(text, "ID", string(m.ID)) }
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			_, _ = fmt.Fprint(w, id(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}}`))
		case m.Method == "tools/list":
			_, _ = fmt.Fprint(w, id(strings.TrimPrefix(oneTool, "tools/list ")))
		case m.Method == "tools/call":
			call(w, string(m.ID), m.Params.Arguments.Only)
		case m.Method == "server/discover":
			_, _ = fmt.Fprint(w, id(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(listener.Close) // once the gateway has left
	return fmt.Sprintf(`{"type": "http", "url": %q}`, listener.URL)
}

// TestOddMessagesByURL: as that of a server by command, in the stream of an answer, or in place of one.
func TestOddMessagesByURL(t *testing.T) {
	odd := oddMessages()
	h := newGatewaySetup(t)
	h.open(map[string]string{"far": remoteTransport(t, func(w http.ResponseWriter, id string, only *int) {
		with := func(text string) string { return strings.ReplaceAll(text, "ID", id) }
		if only != nil {
			_, _ = fmt.Fprint(w, with(odd[*only]))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range append(odd, doneAll) {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", with(text))
		}
	})}, `{"far": {"asks": ["elicitation", "sampling", "roots"], "tools": {"x": {"effectClass": "pure"}}}}`)
	done := func() {
		out := h.call("far__x", tool.Args{})
		require.Equal(t, tool.StatusDone, out.Status, "%s %v", out.Text, out.Error)
		require.Contains(t, string(out.Output), "done all the same")
	}
	done()
	ctx, enough := context.WithTimeout(t.Context(), 200*time.Millisecond) // none of these has an answer
	defer enough()
	var all sync.WaitGroup
	for i := range odd {
		tx := h.txn()
		all.Go(func() { _, _ = tx.Invoke(ctx, "far__x", tool.Args{"only": i}) })
	}
	all.Wait()
	done()
	require.NoError(t, h.gateway.Close())
	require.NotContains(t, h.log.String(), "panic")
}

// TestEventsHoweverTheyEnd: servers end the lines of their events in all ways there are, and the last one not at all.
func TestEventsHoweverTheyEnd(t *testing.T) {
	frames := []string{
		"data: IT\n\n", "data:IT\r\n\r\n", "data: IT\n\r\n", "data: IT\r\n\n", "data: IT\n", "data: IT\r\n", "data: IT", "data: IT\n\n\n\n",
		": hello\n\ndata: IT\n\n", "id: 1\r\ndata:\r\n\r\nid: 2\r\ndata: IT\n\r\n", "event: message\ndata: IT\nid: 7\n", "\n\ndata: IT\n\n",
	}
	h := newGatewaySetup(t)
	h.open(map[string]string{"far": remoteTransport(t, func(w http.ResponseWriter, id string, only *int) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, strings.ReplaceAll(frames[*only], "IT", strings.ReplaceAll(doneAll, "ID", id)))
	})}, `{"far": {"tools": {"x": {"effectClass": "pure"}}}}`)
	for i, frame := range frames {
		out := h.call("far__x", tool.Args{"only": i})
		require.Equal(t, tool.StatusDone, out.Status, "%q %s %v", frame, out.Text, out.Error)
		require.Contains(t, string(out.Output), "done all the same", "%q", frame)
	}
	require.NoError(t, h.gateway.Close())
}
