package upstream

import (
	"context"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/gateway/internal/program"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
)

// Conn is one connection to a server.
type Conn struct {
	cs      *sdk.ClientSession
	program program.Process       // nil: a server by URL
	far     *wire.RemoteTransport // nil: not a server by URL
	stderr  *program.Stderr
	gone    chan struct{}
	ending  atomic.Bool // no call can begin on it
	close   func()
	whole   context.Context //nolint:containedctx // ends with the connection
	cut     context.CancelCauseFunc
	digest  map[string]string // of the definitions, by key

	tuning chan struct{}    // serializes changes of the log level
	level  sdk.LoggingLevel // that the server was told; empty: none

	Exchange wire.Exchange

	mu sync.Mutex // never held across a wait
}

// requestsInBand reports whether the server sends client requests only in the
// responses to calls.
func (s *Conn) requestsInBand() bool {
	r := s.cs.InitializeResult()
	return r != nil && r.ProtocolVersion >= "2026-07-28"
}

func (s *Conn) hasEnded() bool {
	select {
	case <-s.gone:
		return true
	default:
		return s.ending.Load()
	}
}

func (s *Conn) lastWords() string {
	if s.program != nil {
		s.stderr.Await()
	}
	if words := s.stderr.Tail(); words != "" {
		return "; it wrote: " + words
	}
	return ""
}

// Drain lets no call begin on a connection, and closes the connection when its
// calls have ended.
func (s *Conn) Drain() {
	s.ending.Store(true)
	go s.close()
}

// setLogLevel sets the log level at an older server, for this call and all
// later ones. It does nothing if the server has no logging.
func (s *Conn) setLogLevel(ctx context.Context, level sdk.LoggingLevel) {
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
	if s.level != "" && !wire.Below(level, s.level) {
		return
	}
	s.level = level
	ctx, cancel := context.WithTimeout(ctx, wire.PeerTimeout)
	defer cancel()
	_ = s.cs.SetLoggingLevel(ctx, &sdk.SetLoggingLevelParams{Level: level}) // without it, the server logs at its own level
}

// Declares reports whether the server still declares the definition of a key as
// it was pinned.
func (s *Conn) Declares(key, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, there := s.digest[key]
	return there && have == digest
}
