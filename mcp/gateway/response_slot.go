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

// responseSlot is where the result of one request is left as the server wrote it: the SDK's types would put its members into
// another order, and lose those that it does not know.
type responseSlot struct {
	of *inFlightCall // the call that it is the result of; nil: it is of none

	mu      sync.Mutex // never held across a wait
	result  json.RawMessage
	refusal *jsonrpc.Error // the server answered with
	come    chan struct{}  // closed when there is either; nil: the SDK waits for it
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

// Bounds on what a server sends.
const (
	maxMessage = 32 << 20 // bytes of one message
	maxIdle    = 10_000   // messages in a row that answer nothing, within a minute
)

var errFlood = errors.New("the server sent too many messages that answer nothing, and was cut off")

// httpTransport sends requests to a server by URL: with the headers of the configuration, to no other host, and with an eye on
// what comes back.
type httpTransport struct {
	far     *remoteTransport
	home    string // where the server is, as origin has it
	headers map[string]string
	flights *inFlightCalls
	whole   context.Context //nolint:containedctx // of the connection, with which its requests end
	flood   func()          // ends a connection on which nothing comes but what answers nothing
}

// RoundTrip sends one request.
func (w *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if at := origin(r.URL); at != w.home { // a server of the older transport says itself where it takes messages
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

// origin is where a URL leads to, written in one way.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// bodyReader reads along. A message that is too long ends it.
type bodyReader struct {
	io.ReadCloser
	*httpTransport

	of      context.Context //nolint:containedctx // of whoever waits for it, without the connection's
	release func()          // the request has ended
	catch   *responseSlot   // nil: nobody waits
	events  bool
	idle    idleMessageCounter
	seen    []byte // of the message that is being read
	looked  int    // how much of it holds no end
	ready   []byte // events that are to be handed on
	err     error  // behind them
}

var errLong = errors.New("the server sent a message that is too long")

// Read hands on what comes.
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

// readEvents hands on whole events, each of which was looked at.
func (b *bodyReader) readEvents(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil && len(p) > 0 {
		n, err := b.ReadCloser.Read(p)
		b.seen, b.err = append(b.seen, p[:n]...), err
		b.stream()
		switch {
		case len(b.seen) > maxMessage:
			b.err = errLong
		case errors.Is(err, io.EOF) && len(b.seen) > 0: // the last one needs no end
			b.ready = append(b.ready, b.event(b.seen)...)
			b.seen, b.looked = nil, 0
		}
	}
	return b.hand(p)
}

// stream takes each event that is complete.
func (b *bodyReader) stream() {
	for {
		fresh := b.seen[b.looked:]
		end, width := bytes.Index(fresh, []byte("\n\n")), 2
		if crlf := bytes.Index(fresh, []byte("\n\r\n")); crlf >= 0 && (end < 0 || crlf < end) {
			end, width = crlf, 3
		}
		if end < 0 {
			b.looked = max(0, len(b.seen)-2) // an end may be half there
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

// event looks at one event, and returns it with the call in it that it is about. What comes on the stream that is of no call
// can only be for the one that is under way.
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
		return event // what cannot be marked is for nobody
	}
	return append(append(append(rest, "data: "...), marked...), "\n\n"...)
}

// message leaves the result or the error that a message has. Requests and notifications have none.
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
