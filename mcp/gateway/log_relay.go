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

// Bounds on what a server logs of one call that its client has not been told yet; more is dropped.
const (
	mostHeard      = 1000
	mostHeardBytes = 8 << 20
)

const methodLog = "notifications/message"

// logRelay is what a server logs of one call, on its way to the client: a client that is slow holds up nobody else.
type logRelay struct {
	log clientctx.Log

	mu      sync.Mutex // never held across a wait
	waiting []*sdk.LoggingMessageParams
	bytes   int
	over    bool          // nothing more comes
	some    chan struct{} // something waits, or it is over
	done    chan struct{} // all was told
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

// levels are in order.
func levels() []sdk.LoggingLevel {
	return []sdk.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// below reports whether a message of one level is none for who wants another; a level that nobody knows is none for anybody.
func below(one, wanted sdk.LoggingLevel) bool {
	at := slices.Index(levels(), one)
	return at < 0 || at < slices.Index(levels(), wanted)
}

// add takes a message as it came. It waits for nobody.
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
	default: // it is awake
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

// end waits until the client was told what came before the answer, for a while.
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

// hear takes what a server logs. Where the call that it is of is not known, it is that of the session whose calls alone are under way; else
// it is for nobody.
func (f *inFlightCalls) hear(of *inFlightCall, params json.RawMessage) {
	if of == nil {
		of = f.ofOneSession()
	}
	if of != nil {
		of.heard.add(params)
	}
}

// ofOneSession is the first of the calls that are under way, where all are of one session.
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

// hearMessage takes a message, if it is one for the log.
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

// setLogLevel has an older server log what a client wants, for all that come after it, too. One that cannot is let be.
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
	_ = s.cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: level}) // who does not take it logs what it wants
}
