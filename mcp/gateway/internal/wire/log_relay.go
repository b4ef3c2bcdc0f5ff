package wire

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/clientctx"
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
	go h.send()
	return h
}

// levels returns the log levels in order.
func levels() []sdk.LoggingLevel {
	return []sdk.LoggingLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// Below reports whether a message's level is below the wanted one. An unknown
// level is below every level.
func Below(one, wanted sdk.LoggingLevel) bool {
	at := slices.Index(levels(), one)
	return at < 0 || at < slices.Index(levels(), wanted)
}

// add adds a message. It does not block.
func (h *logRelay) add(params json.RawMessage) {
	if h.log.Level == "" {
		return
	}
	var p sdk.LoggingMessageParams
	if json.Unmarshal(params, &p) != nil || Below(p.Level, h.log.Level) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || len(h.waiting) >= maxQueuedLogs || h.bytes+len(params) > maxQueuedLogBytes {
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

func (h *logRelay) send() {
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
	late := time.NewTimer(PeerTimeout)
	defer late.Stop()
	select {
	case <-h.done:
	case <-ctx.Done():
	case <-late.C:
	}
}
