package upstream

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/sync/semaphore"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/clientrequest"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
)

// Upstream is one server, whether it runs or not.
type Upstream struct {
	Shared *Shared
	Server config.Server

	gate    chan struct{}       // serializes connecting
	Sandbox *program.Sandbox    // the sandbox; nil: none
	room    *semaphore.Weighted // weights of calls: small, or all of it for an exclusive call

	Fresh    atomic.Bool // unknown at its first start
	watches  subscriptions
	Requests *clientrequest.Forwarder
	there    sync.WaitGroup // connections that have not ended, including abandoned ones

	mu            sync.Mutex // never held across a wait
	live          *Conn
	trying        *attempt // nil: no attempt runs
	failures      int
	notBefore     time.Time // no attempt before this time
	why           error     // the last failure
	has           definition.Declared
	changeBackoff changeBackoff
	again         bool // the list changed while it was read
	reading       bool
	alone         map[string]bool   // tools that run exclusively, because they send client requests
	auth          auth.OAuthHandler // of a server by URL that needs it; nil: not created
}

// New returns a server that does not run. Box is its sandbox; nil: none.
func New(h *Shared, s config.Server, box *program.Sandbox) *Upstream {
	u := &Upstream{Shared: h, Server: s, Sandbox: box, gate: make(chan struct{}, 1), room: semaphore.NewWeighted(most), alone: map[string]bool{}, watches: subscriptions{requestLock: make(chan struct{}, 1)}}
	u.Requests = &clientrequest.Forwarder{Server: s, Folders: h.Roots, Log: h.Log, RunExclusively: u.runExclusively}
	return u
}

// Close ends the connections, and returns when they have ended.
func (u *Upstream) Close() {
	u.gate <- struct{}{} // no new connection
	defer func() { <-u.gate }()
	u.finish()
	if s := u.Current(); s != nil {
		s.close()
	}
	u.there.Wait() // otherwise an earlier connection could remain
}

// Status is the state of a server for an operator.
type Status struct {
	Connected bool
	Why       error // why the server is down; nil: it is connected, or there was no attempt
	Tools     int
}

// Status returns the state of the server.
func (u *Upstream) Status() Status {
	s := Status{Connected: u.Current() != nil}
	u.mu.Lock()
	defer u.mu.Unlock()
	s.Tools = len(u.has.Of(definition.Tools))
	if !s.Connected {
		s.Why = u.why
	}
	return s
}

// Current returns the connection, or nil.
func (u *Upstream) Current() *Conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live != nil && u.live.hasEnded() {
		u.live = nil
	}
	return u.live
}

// startBackoff starts the backoff of a server. It grows with each failure, so
// that the gateway does not restart a crashing server in a loop.
func (u *Upstream) startBackoff(why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.why = why
	wait := min(time.Second<<min(u.failures, 10), u.Shared.MaxBackoff)
	u.failures++
	u.notBefore = u.Shared.Now().Add(wait)
}

// runExclusively makes tools run one at a time from now on.
func (u *Upstream) runExclusively(tools []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range tools {
		u.alone[name] = true
	}
}

// Declared returns what the server declares.
func (u *Upstream) Declared() definition.Declared {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.has
}
