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

// inFlightCall is a call that was sent to a server and has no answer. Whoever made it may have given it up: the server can be at
// it all the same, and what it asks then is asked for nobody.
type inFlightCall struct {
	id     string // nobody can guess it
	tool   string
	client clientctx.Client                                       // nil: there is nobody to ask
	note   func(ctx context.Context, what any) error              // on the journal
	permit func(ctx context.Context, a perm.ResourceAccess) error // asks the policy; nil: it permits nothing
	ctx    context.Context                                        //nolint:containedctx // what the server asks comes by another way, and is of this call

	n     int       // which one of its session it is
	heard *logRelay // what its server logs of it

	reports *progressRelay // of how far it is; nil: nobody wants them

	turn   chan struct{} // one question at a time
	asking sync.WaitGroup
	gone   bool // given up
	said   []clientRequestRecord
}

// inFlightCalls are the calls of one session that have no answer.
type inFlightCalls struct {
	mu   sync.Mutex // never held across a wait
	all  map[string]*inFlightCall
	n    int
	lost bool // there were more that were given up than anybody wants to remember
}

// mostLost bounds the calls that were given up, and of which no answer ever came.
const mostLost = 10_000

// begin counts a call in before it is sent.
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

// remove notes that the answer has come. Nothing is asked for the call from here on.
func (f *inFlightCalls) remove(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, one.id)
}

// again counts a call in once more, which its server has answered with something that it wants first.
func (f *inFlightCalls) again(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[one.id] = one
}

// abandon notes that nobody waits for the answer any more.
func (f *inFlightCalls) abandon(one *inFlightCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.gone = true
}

// sole is the call that what the server asks can only be for: that of the one call which it is at.
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

// enter begins to ask for a call, which does not end before leave is called.
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

// tools are those that the server is at.
func (f *inFlightCalls) tools() (names []string, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost = f.lost
	for _, one := range f.all {
		names, lost = append(names, one.tool), lost || one.gone
	}
	return names, lost
}

// markFlight is where in _meta of what a server asks the gateway notes for which call it is. What the server itself has there
// is dropped.
const markFlight = "remit.dev/flight"

// asks reports whether a message is something that a server asks its client about a call.
func asks(method string) bool {
	return method == methodElicit || method == methodSample || method == methodRoots
}

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// mark notes the call in the parameters of what is asked for it.
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

// members are those of an object. One that is left out, or null, has none.
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

// markMessage is mark for a whole message; one that asks nothing is returned as it is.
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

// markRequest is mark for a message that is taken apart already.
func markRequest(r *jsonrpc.Request, id string) error {
	params, err := mark(r.Params, id)
	if err != nil {
		return fmt.Errorf("what the server asks: %w", err)
	}
	r.Params = params
	return nil
}

func printable(names []string) string { return canon.Printable(strings.Join(names, ", "), 256) }
