package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/clientctx"
)

// Bounds on the log messages of one call that its client has not received. The
// gateway drops further ones.
const (
	mostHeard      = 1000
	mostHeardBytes = 8 << 20
)

const methodLog = "notifications/message"

// logRelay forwards the log messages of one call to its client. A slow client
// does not block others.
type logRelay struct {
	log clientctx.Log

	mu      sync.Mutex // never held across a wait
	waiting []*sdk.LoggingMessageParams
	bytes   int
	over    bool          // no more messages
	some    chan struct{} // a message waits, or no more come
	done    chan struct{} // closed when all are sent
}

func newLogRelay(log clientctx.Log) *logRelay {
	h := &logRelay{log: log, some: make(chan struct{}, 1), done: make(chan struct{})}
	if log.Level == "" {
		close(h.done)
		return h
	}
	go h.tell()
	return h
}

// levels returns the log levels in order.
func levels() []sdk.LoggingLevel {
	return []sdk.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// below reports whether a message's level is below the wanted one. An unknown
// level is below every level.
func below(one, wanted sdk.LoggingLevel) bool {
	at := slices.Index(levels(), one)
	return at < 0 || at < slices.Index(levels(), wanted)
}

// add adds a message. It does not block.
func (h *logRelay) add(params json.RawMessage) {
	if h.log.Level == "" {
		return
	}
	var p sdk.LoggingMessageParams
	if json.Unmarshal(params, &p) != nil || below(p.Level, h.log.Level) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || len(h.waiting) >= mostHeard || h.bytes+len(params) > mostHeardBytes {
		return
	}
	h.waiting, h.bytes = append(h.waiting, &p), h.bytes+len(params)
	h.wake()
}

func (h *logRelay) wake() {
	select {
	case h.some <- struct{}{}:
	default: // already signalled
	}
}

func (h *logRelay) tell() {
	defer close(h.done)
	for range h.some {
		h.mu.Lock()
		all, over := h.waiting, h.over
		h.waiting, h.bytes = nil, 0
		h.mu.Unlock()
		for _, p := range all {
			h.log.Say(p)
		}
		if over {
			return
		}
	}
}

// end waits until the client has received the messages before the response, for
// a while.
func (h *logRelay) end(ctx context.Context) {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.wake()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-h.done:
	case <-ctx.Done():
	case <-late.C:
	}
}

// hear routes a log message of a server. If its call is unknown, the message
// goes to the only session with in-flight calls, or else is dropped.
func (f *inFlightCalls) hear(of *inFlightCall, params json.RawMessage) {
	if of == nil {
		of = f.ofOneSession()
	}
	if of != nil {
		of.heard.add(params)
	}
}

// ofOneSession returns the first in-flight call if all belong to one session.
func (f *inFlightCalls) ofOneSession() (first *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return nil
	}
	for _, one := range f.all {
		switch {
		case one.heard.log.Session == "" || first != nil && one.heard.log.Session != first.heard.log.Session:
			return nil
		case first == nil || one.n < first.n:
			first = one
		}
	}
	return first
}

// hearMessage takes a message if it is a log message.
func (f *inFlightCalls) hearMessage(of *inFlightCall, data []byte) {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(data, &m) == nil && m.Method == methodLog {
		f.hear(of, m.Params)
	}
}

func (f *inFlightCalls) hearRequest(r *jsonrpc.Request) {
	if r.Method == methodLog {
		f.hear(nil, r.Params)
	}
}

// setLogLevel sets the log level at an older server, for this call and all
// later ones. It does nothing if the server has no logging.
func (s *upstreamConn) setLogLevel(ctx context.Context, level sdk.LoggingLevel) {
	r := s.cs.InitializeResult()
	if level == "" || s.requestsInBand() || r == nil || r.Capabilities == nil || r.Capabilities.Logging == nil {
		return
	}
	select {
	case s.tuning <- struct{}{}:
		defer func() { <-s.tuning }()
	case <-ctx.Done():
		return
	}
	if s.level != "" && !below(level, s.level) {
		return
	}
	s.level = level
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = s.cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: level}) // without it, the server logs at its own level
}
