package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// notifier sends a client notifications that the SDK has no type for.
type notifier interface {
	notify(ctx context.Context, m *jsonrpc.Request) error
}

type notifierKey struct{}

const tokenLine = "line"

// notifierOf returns the notifier of a request, or nil.
func notifierOf(ctx context.Context, extra *sdk.RequestExtra) notifier {
	if extra != nil && extra.TokenInfo != nil {
		l, _ := extra.TokenInfo.Extra[tokenLine].(notifier)
		return l
	}
	l, _ := ctx.Value(notifierKey{}).(notifier)
	return l
}

// stream is a response over HTTP that stays open. The SDK and the task
// notifications write to it.
type stream struct {
	http.ResponseWriter
	mu   sync.Mutex
	over bool
}

// Unwrap is for http.ResponseController.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write writes one event, or a part of a response that is no event.
func (s *stream) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ResponseWriter.Write(data)
}

// FlushError sends what was written.
func (s *stream) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// slow bounds how long a client can take to receive an event.
const slow = 30 * time.Second

func (s *stream) notify(_ context.Context, m *jsonrpc.Request) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errors.New("the stream has ended")
	}
	out := http.NewResponseController(s.ResponseWriter)
	_ = out.SetWriteDeadline(time.Now().Add(slow))
	if _, err := fmt.Fprintf(s.ResponseWriter, "event: message\ndata: %s\n\n", data); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return out.SetWriteDeadline(time.Time{})
}

// end must be called before the handler returns.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// streams gives a request its body. It makes the response to a listening
// request one that task notifications can write to.
func streams(w http.ResponseWriter, r *http.Request, body []byte) (http.ResponseWriter, *http.Request, func()) {
	if r.Method != http.MethodPost || answered(r) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return w, r, func() {}
	}
	body = listenWithTasks(body)
	s := &stream{ResponseWriter: w}
	r = r.WithContext(context.WithValue(r.Context(), notifierKey{}, s))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return s, r, s.end
}

// withTasks copies the task IDs in the params of a listening request to where
// the SDK keeps them. It does not change params that it cannot read.
func withTasks(params json.RawMessage) json.RawMessage {
	var p struct {
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
		} `json:"notifications"`
	}
	var all, meta map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || len(p.Notifications.TaskIDs) == 0 || json.Unmarshal(params, &all) != nil {
		return params
	}
	if json.Unmarshal(all["_meta"], &meta) != nil || meta == nil {
		return params // the server rejects a request without its metadata
	}
	meta[metaListenTasks], _ = json.Marshal(p.Notifications.TaskIDs) // strings
	all["_meta"], _ = json.Marshal(meta)                             // parsed above
	changed, _ := json.Marshal(all)
	return changed
}

// listenWithTasks is withTasks for a whole message.
func listenWithTasks(body []byte) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil || all["params"] == nil {
		return body
	}
	all["params"] = withTasks(all["params"])
	changed, err := json.Marshal(all)
	if err != nil {
		return body
	}
	return changed
}
