package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// bodyReader reads a response along. A message over the limit ends it.
type bodyReader struct {
	io.ReadCloser

	flights *InFlightCalls
	whole   context.Context //nolint:containedctx // of the connection
	flood   func(why error)
	of      context.Context //nolint:containedctx // context of the caller, without the connection's
	release func()          // call it when the request has ended
	slot    *ResponseSlot   // nil: no caller waits
	events  bool
	idle    idleMessageCounter
	seen    []byte // of the current message
	looked  int    // bytes of seen that contain no event end
	ready   []byte // events to pass on
	err     error  // after ready
}

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
			b.flood(err)
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
	var of *InFlightCall
	switch {
	case b.slot == nil:
		id = b.flights.sole()
	case b.slot.of == nil:
		b.message(data)
		return event
	default:
		b.message(data)
		of, id = b.slot.of, b.slot.of.id
	}
	if bytes.Contains(data, []byte(methodLog)) {
		b.flights.relayMessage(of, data)
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
		b.slot.refuse(m.Error)
	case m.Result != nil:
		b.slot.setResult(m.Result)
	}
}

// forNobody replaces a response that its caller gave up. A truncated response
// would end the connection, and with it other calls.
const forNobody = `{"jsonrpc":"2.0","id":"given up","error":{"code":-32000,"message":"no call waits for this answer any more"}}`

// readWhole passes on a message that is no stream.
func (b *bodyReader) readWhole(p []byte) (int, error) {
	if b.err == nil && len(p) > 0 {
		b.seen, b.err = io.ReadAll(io.LimitReader(b.ReadCloser, maxMessage+1))
		switch {
		case len(b.seen) > maxMessage:
			b.err = errLong
		case b.err == nil:
			if b.slot != nil {
				b.message(b.seen)
			}
			b.ready, b.err = b.seen, io.EOF
		case b.of.Err() != nil && b.whole.Err() == nil:
			b.ready, b.err = []byte(forNobody), io.EOF
		}
	}
	return b.hand(p)
}

// hand passes on the bytes that are ready.
func (b *bodyReader) hand(p []byte) (int, error) {
	n := copy(p, b.ready)
	if b.ready = b.ready[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, b.err
}
