package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/perm"
)

// inFlightCall is a call that was sent to a server and has no response. If its
// caller has abandoned it, the server can still process it; its client requests
// then have no client.
type inFlightCall struct {
	id     string // unguessable
	tool   string
	client clientctx.Client                                       // nil: no client can be asked
	note   func(ctx context.Context, what any) error              // records a note
	permit func(ctx context.Context, a perm.ResourceAccess) error // evaluates the policy; nil: permits nothing
	ctx    context.Context                                        //nolint:containedctx // for client requests of this call, which arrive on another path

	n     int       // its number in the connection
	heard *logRelay // log messages of the call

	reports *progressRelay // progress of the call; nil: unwanted

	turn   chan struct{} // serializes client requests
	asking sync.WaitGroup
	gone   bool // abandoned
	said   []clientRequestRecord
}

// inFlightCalls holds the calls of one connection that have no response.
type inFlightCalls struct {
	mu   sync.Mutex // never held across a wait
	all  map[string]*inFlightCall
	n    int
	lost bool // more calls were abandoned than are kept
}

// mostLost bounds the abandoned calls that never got a response.
const mostLost = 10_000

// begin adds a call before it is sent.
func (f *inFlightCalls) begin(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*inFlightCall{}
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

// remove removes a call that has its response. The server can make no client
// requests for it from then on.
func (f *inFlightCalls) remove(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, one.id)
}

// again adds a call again whose server responded with client requests.
func (f *inFlightCalls) again(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[one.id] = one
}

// abandon notes that the caller does not wait for the response.
func (f *inFlightCalls) abandon(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.gone = true
}

// sole returns the only in-flight call, if there is exactly one and it is not
// abandoned.
func (f *inFlightCalls) sole() string {
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

// enter begins a client request of a call. The call does not end before leave
// is called.
func (f *inFlightCalls) enter(id string) (one *inFlightCall, leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok = f.all[id]
	if !ok || one.gone {
		return nil, nil, false
	}
	one.asking.Add(1)
	return one, one.asking.Done, true
}

// tools returns the tools of the in-flight calls. Lost reports that calls were
// abandoned.
func (f *inFlightCalls) tools() (names []string, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost = f.lost
	for _, one := range f.all {
		names, lost = append(names, one.tool), lost || one.gone
	}
	return names, lost
}

// markFlight is the _meta key under which the gateway notes the call of a
// client request. The gateway drops a value that the server set.
const markFlight = "remit.dev/flight"

// asks reports whether a method is a client request for a call.
func asks(method string) bool {
	return method == methodElicit || method == methodSample || method == methodRoots
}

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// mark adds the call to the parameters of a client request.
func mark(params json.RawMessage, id string) (json.RawMessage, error) {
	all, err := members(params)
	if err != nil {
		return nil, errors.New("the parameters are no object")
	}
	meta, err := members(all["_meta"])
	if err != nil {
		return nil, errors.New("_meta is no object")
	}
	delete(meta, markFlight)
	if id != "" {
		meta[markFlight] = json.RawMessage(fmt.Sprintf("%q", id))
	}
	if all["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// members returns the members of an object. Missing or null has none.
func members(object json.RawMessage) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(object)) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	if all == nil { // null
		all = map[string]json.RawMessage{}
	}
	return all, nil
}

// markMessage is mark for a whole message. It returns other messages unchanged.
func markMessage(data []byte, id string) ([]byte, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if !bytes.Contains(data, []byte(`"method"`)) || json.Unmarshal(data, &m) != nil || !asks(m.Method) {
		return data, nil
	}
	params, err := mark(m.Params, id)
	if err != nil {
		return nil, fmt.Errorf("what the server asks: %w", err)
	}
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "method": m.Method, "params": json.RawMessage(params)})
}

// markRequest is mark for a parsed message.
func markRequest(r *jsonrpc.Request, id string) error {
	params, err := mark(r.Params, id)
	if err != nil {
		return fmt.Errorf("what the server asks: %w", err)
	}
	r.Params = params
	return nil
}

func printable(names []string) string { return canon.Printable(strings.Join(names, ", "), 256) }
