package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// catch is where the result of one request is left as the server wrote it: the SDK's types would put its members into
// another order, and lose those that it does not know.
type catch struct {
	mu      sync.Mutex // never held across a wait
	result  json.RawMessage
	refusal *jsonrpc.Error // the server answered with
}

type catchKey struct{}

func catching(ctx context.Context) (context.Context, *catch) {
	c := &catch{}
	return context.WithValue(ctx, catchKey{}, c), c
}

func catchOf(ctx context.Context) *catch {
	c, _ := ctx.Value(catchKey{}).(*catch)
	return c
}

func (c *catch) leave(result json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result = bytes.Clone(result)
}

func (c *catch) refuse(e *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = e
}

func (c *catch) caught() (json.RawMessage, *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result, c.refusal
}

// Bounds on what a server sends.
const (
	maxMessage = 32 << 20 // bytes of one message
	maxIdle    = 10_000   // messages in a row that answer nothing
)

var errFlood = errors.New("the server sent too many messages that answer nothing, and was cut off")

// pipe is a transport over a server's standard files.
type pipe struct {
	in  io.WriteCloser
	out io.ReadCloser
}

// Connect begins to read.
func (p *pipe) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := (&sdk.IOTransport{Reader: p.out, Writer: p.in, MaxLineLength: maxMessage}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tapped{Connection: conn, waiting: map[any]*catch{}}, nil
}

// tapped sees each message of a connection.
type tapped struct {
	sdk.Connection

	idle int // only the one reader counts

	mu      sync.Mutex // never held across a wait
	waiting map[any]*catch
}

// Write remembers who waits for the answer.
func (t *tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() {
		if c := catchOf(ctx); c != nil {
			t.mu.Lock()
			t.waiting[req.ID.Raw()] = c
			t.mu.Unlock()
			context.AfterFunc(ctx, func() { t.forget(req.ID.Raw()) })
		}
	}
	return t.Connection.Write(ctx, m)
}

// Read leaves results with who waits for them.
func (t *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if err != nil {
		return m, err
	}
	resp, ok := m.(*jsonrpc.Response)
	if !ok {
		if t.idle++; t.idle > maxIdle {
			return nil, errFlood
		}
		return m, nil
	}
	t.idle = 0
	c := t.forget(resp.ID.Raw())
	if c == nil {
		return m, nil
	}
	var said *jsonrpc.Error
	if errors.As(resp.Error, &said) {
		c.refuse(said)
	} else {
		c.leave(resp.Result)
	}
	return m, nil
}

func (t *tapped) forget(id any) *catch {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[id]
	delete(t.waiting, id)
	return c
}

// web sends requests to a server by URL: with the headers of the configuration, to no other host, and with an eye on
// what comes back.
type web struct {
	base    http.RoundTripper
	headers map[string]string
}

// RoundTrip sends one request.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	resp, err := w.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	b := &body{ReadCloser: resp.Body, catch: catchOf(r.Context())}
	b.events = strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	resp.Body = b
	return resp, nil
}

// body reads along. A message that is too long ends it.
type body struct {
	io.ReadCloser

	catch  *catch // nil: nobody waits
	events bool
	seen   []byte // of the message that is being read
}

var errLong = errors.New("the server sent a message that is too long")

// Read hands on what comes.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.seen = append(b.seen, p[:n]...)
	if b.events {
		b.stream()
	} else if b.catch != nil {
		b.message(b.seen)
	}
	if len(b.seen) > maxMessage {
		return 0, errLong
	}
	return n, err
}

// stream looks at each event that is complete.
func (b *body) stream() {
	for {
		end, width := bytes.Index(b.seen, []byte("\n\n")), 2
		if crlf := bytes.Index(b.seen, []byte("\r\n\r\n")); crlf >= 0 && (end < 0 || crlf < end) {
			end, width = crlf, 4
		}
		if end < 0 {
			return
		}
		var data []byte
		for line := range bytes.Lines(b.seen[:end+1]) {
			if text, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
				data = append(append(data, bytes.TrimPrefix(text, []byte(" "))...), '\n')
			}
		}
		if b.catch != nil {
			b.message(data)
		}
		b.seen = b.seen[end+width:]
	}
}

// message leaves the result or the error that a message has. Requests and notifications have none.
func (b *body) message(data []byte) {
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
