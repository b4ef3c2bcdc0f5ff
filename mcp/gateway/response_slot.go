package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// responseSlot receives the raw result of one request. The SDK's types would
// reorder its members and lose unknown ones.
type responseSlot struct {
	of *inFlightCall // the call of the result; nil: none

	mu      sync.Mutex // never held across a wait
	result  json.RawMessage
	refusal *jsonrpc.Error // the error response
	come    chan struct{}  // closed when either is set; nil: the SDK waits for the response
}

type responseSlotKey struct{}

func withResponseSlot(ctx context.Context) (context.Context, *responseSlot) {
	c := &responseSlot{}
	return context.WithValue(ctx, responseSlotKey{}, c), c
}

func responseSlotOf(ctx context.Context) *responseSlot {
	c, _ := ctx.Value(responseSlotKey{}).(*responseSlot)
	return c
}

func (c *responseSlot) leave(result json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = bytes.Clone(result)
}

func (c *responseSlot) refuse(e *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = e
}

func (c *responseSlot) caught() (json.RawMessage, *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result, c.refusal
}

// Bounds on the messages of a server.
const (
	maxMessage = 32 << 20 // bytes of one message
	maxIdle    = 10_000   // consecutive messages within a minute that respond to nothing
)

var errFlood = errors.New("the server sent too many messages that answer nothing, and was cut off")

// httpTransport sends requests to a server by URL, with the headers of the
// configuration and to no other host. It reads the responses along.
type httpTransport struct {
	far     *remoteTransport
	home    string // origin of the server
	headers map[string]string
	flights *inFlightCalls
	whole   context.Context //nolint:containedctx // of the connection; its end ends the requests
	flood   func()          // ends a connection that carries only messages that respond to nothing
}

// RoundTrip sends one request.
func (w *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if at := origin(r.URL); at != w.home { // a server of the legacy transport names the URL for messages itself
		return nil, w.far.refuse(fmt.Errorf("the server at %s wants messages sent to %s, which is not where it is", w.home, at))
	}
	of := r.Context()
	r, release, err := w.limitedReader(r)
	if err != nil {
		return nil, err
	}
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	resp, err := w.far.base.RoundTrip(r)
	if err != nil {
		release()
		return nil, err
	}
	b := &bodyReader{ReadCloser: resp.Body, httpTransport: w, of: of, release: release, catch: responseSlotOf(of)}
	b.events = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = b
	return resp, nil
}

// origin returns the origin of a URL in one normal form.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// bodyReader reads a response along. A message over the limit ends it.
type bodyReader struct {
	io.ReadCloser
	*httpTransport

	of      context.Context //nolint:containedctx // context of the caller, without the connection's
	release func()          // call it when the request has ended
	catch   *responseSlot   // nil: no caller waits
	events  bool
	idle    idleMessageCounter
	seen    []byte // of the current message
	looked  int    // bytes of seen that contain no event end
	ready   []byte // events to pass on
	err     error  // after ready
}

var errLong = errors.New("the server sent a message that is too long")

// Read passes on the body.
func (b *bodyReader) Read(p []byte) (int, error) {
	if b.events {
		return b.readEvents(p)
	}
	return b.readWhole(p)
}

// Close ends the request.
func (b *bodyReader) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}

// readEvents passes on whole events after routing each.
func (b *bodyReader) readEvents(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil && len(p) > 0 {
		n, err := b.ReadCloser.Read(p)
		b.seen, b.err = append(b.seen, p[:n]...), err
		b.stream()
		switch {
		case len(b.seen) > maxMessage:
			b.err = errLong
		case errors.Is(err, io.EOF) && len(b.seen) > 0: // the last event needs no blank line
			b.ready = append(b.ready, b.event(b.seen)...)
			b.seen, b.looked = nil, 0
		}
	}
	return b.hand(p)
}

// stream takes each complete event.
func (b *bodyReader) stream() {
	for {
		fresh := b.seen[b.looked:]
		end, width := bytes.Index(fresh, []byte("\n\n")), 2
		if crlf := bytes.Index(fresh, []byte("\n\r\n")); crlf >= 0 && (end < 0 || crlf < end) {
			end, width = crlf, 3
		}
		if end < 0 {
			b.looked = max(0, len(b.seen)-2) // an event end can be half there
			return
		}
		end += b.looked
		b.ready = append(b.ready, b.event(b.seen[:end+width])...)
		b.seen, b.looked = b.seen[end+width:], 0
		if err := b.idle.more(time.Now()); err != nil {
			b.err = err
			b.flood()
			return
		}
	}
}

// event routes one event, and returns it marked with its call. On a stream that
// belongs to no call, it can only belong to the sole in-flight call.
func (b *bodyReader) event(event []byte) []byte {
	var data, rest []byte
	for line := range bytes.Lines(event) {
		line = bytes.TrimRight(line, "\r\n")
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(text, []byte(" "))...), '\n')
		} else if len(line) > 0 {
			rest = append(append(rest, line...), '\n')
		}
	}
	id := ""
	var of *inFlightCall
	switch {
	case b.catch == nil:
		id = b.flights.sole()
	case b.catch.of == nil:
		b.message(data)
		return event
	default:
		b.message(data)
		of, id = b.catch.of, b.catch.of.id
	}
	if bytes.Contains(data, []byte(methodLog)) {
		b.flights.hearMessage(of, data)
	}
	marked, err := markMessage(data, id)
	if err != nil || bytes.Equal(marked, data) {
		return event // an event that cannot be marked belongs to no call
	}
	return append(append(append(rest, "data: "...), marked...), "\n\n"...)
}

// message stores the result or error of a message. Requests and notifications
// have none.
func (b *bodyReader) message(data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[len(data)-1] != '}' {
		return
	}
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	switch {
	case json.Unmarshal(data, &m) != nil:
	case m.Error != nil:
		b.catch.refuse(m.Error)
	case m.Result != nil:
		b.catch.leave(m.Result)
	}
}
