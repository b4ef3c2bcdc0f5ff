package wire

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/perm"
)

// InFlightCall is a call that was sent to a server and has no response. If its
// caller has abandoned it, the server can still process it; its client requests
// then have no client.
type InFlightCall struct {
	Tool    string
	Client  clientctx.Client                                       // nil: no client can be asked
	Note    func(ctx context.Context, what any) error              // records a note
	Permit  func(ctx context.Context, a perm.ResourceAccess) error // evaluates the policy; nil: permits nothing
	Context context.Context                                        //nolint:containedctx // for client requests of this call, which arrive on another path
	Records []ClientRequestRecord                                  // client requests so far; only their caller uses it, between Serialize and its end

	id          string         // unguessable
	n           int            // its number in the connection
	logs        *logRelay      // log messages of the call
	progress    *progressRelay // progress of the call; nil: unwanted
	requestLock chan struct{}  // serializes client requests
	pending     sync.WaitGroup // client requests
	gone        bool           // abandoned
}

// Serialize waits until no other client request of the call runs. The caller
// calls end when its own has ended. Serialize returns an error if the context
// ends first.
func (f *InFlightCall) Serialize(ctx context.Context) (end func(), err error) {
	select {
	case f.requestLock <- struct{}{}:
		return func() { <-f.requestLock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ClientRequestRecord is the journal's record of a client request. It holds
// neither the request nor the response.
type ClientRequestRecord struct {
	Method string `json:"method"`
	Answer string `json:"answer,omitempty"` // empty: no response
}

// InFlightCalls holds the calls of one connection that have no response.
type InFlightCalls struct {
	mu   sync.Mutex // never held across a wait
	all  map[string]*InFlightCall
	n    int
	lost bool // more calls were abandoned than are kept
}

// begin adds a call before it is sent.
func (f *InFlightCalls) begin(one *InFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*InFlightCall{}
	}
	f.n++
	one.id, one.n = rand.Text(), f.n
	f.all[one.id] = one
	if len(f.all) > mostLost {
		f.lost = true
		for id, other := range f.all {
			if other.gone {
				delete(f.all, id)
			}
		}
	}
}

// Remove removes a call that has its response. The server can make no client
// requests for it from then on.
func (f *InFlightCalls) Remove(one *InFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, one.id)
}

// Again adds a call again whose server responded with client requests.
func (f *InFlightCalls) Again(one *InFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[one.id] = one
}

// Abandon notes that the caller does not wait for the response.
func (f *InFlightCalls) Abandon(one *InFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.gone = true
}

// sole returns the only in-flight call, if there is exactly one and it is not
// abandoned.
func (f *InFlightCalls) sole() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost || len(f.all) != 1 {
		return ""
	}
	for id, one := range f.all {
		if !one.gone {
			return id
		}
	}
	return ""
}

// Len returns the number of calls.
func (f *InFlightCalls) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// Enter begins a client request of a call. The call does not end before leave
// is called.
func (f *InFlightCalls) Enter(id string) (one *InFlightCall, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok = f.all[id]
	if !ok || one.gone {
		return nil, nil, false
	}
	one.pending.Add(1)
	return one, one.pending.Done, true
}

// Tools returns the tools of the in-flight calls. Lost reports that calls were
// abandoned.
func (f *InFlightCalls) Tools() (names []string, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost = f.lost
	for _, one := range f.all {
		names, lost = append(names, one.Tool), lost || one.gone
	}
	return names, lost
}
