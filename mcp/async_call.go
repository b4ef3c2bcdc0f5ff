package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/panics"
)

// asyncCall is a call that continues across several requests of its client. A
// client of the newest revision gets the client request in a result, and
// responds by its next request; the state of the call stays here meanwhile.
// After the call became a task, see task_state.go, no request attends it.
type asyncCall struct {
	*backgroundCall
	c     *call
	asks  chan *clientRequest  // hands one to the request that is served
	early sdk.InputResponseMap // responses of the first request; only the attending request reads them
	r     *wireResult          // the result of the call, with err
	err   error
	apart chan struct{} // closed when the call becomes a task

	requestLock chan struct{}  // serializes client requests
	mu          sync.Mutex     // never held across a wait
	open        *clientRequest // the client request that the client knows
	n           int            // its number
	taskState
}

// clientRequest is one request to the client.
type clientRequest struct {
	what      sdk.InputRequestMap
	reply     chan sdk.InputResponseMap // receives one response
	responses sdk.InputResponseMap      // of a task: the responses so far
}

func newAsyncCall(c *call) *asyncCall {
	t := &asyncCall{c: c, asks: make(chan *clientRequest), requestLock: make(chan struct{}, 1), apart: make(chan struct{})}
	t.backgroundCall = &backgroundCall{id: rand.Text(), st: c.st, async: t}
	t.changes = make(chan struct{})
	return t
}

// runAsync runs the call. The request gets the result, the first client
// request, or a task.
func (c *call) runAsync(ctx context.Context, leave func()) (*wireResult, error) {
	t := newAsyncCall(c)
	t.early = maps.Clone(c.req.Params.InputResponses)
	c.report = &progressSender{lastReported: -1}
	c.report.attach(ctx, c.req)
	if c.mayTask {
		c.begun = &startSignal{started: make(chan struct{})}
	}
	gone := c.s.sessions.stay(c.st)
	c.s.runs.begin(ctx, t.backgroundCall, func(ctx context.Context) {
		defer gone()
		defer leave()
		defer t.finishTask()
		defer panics.Catch(c.s.opts.Log, methodCall, &t.err)
		t.r, t.err = c.runCaptured(clientctx.With(ctx, t))
	})
	return t.serveRequest(ctx, c)
}

// serveRequest waits for the response to a request: the one that began the
// call, or one that continues it.
func (t *asyncCall) serveRequest(ctx context.Context, by *call) (*wireResult, error) {
	asks, late, runs := t.asks, (<-chan time.Time)(nil), (<-chan struct{})(nil)
	may := by.mayTask && t.c.begun != nil
	switch {
	case may && t.c.alwaysTask():
		asks, runs = nil, t.c.begun.started // the call asks as a task
	case may:
		late = time.After(t.c.s.opts.TaskAfter)
	}
	for {
		select {
		case <-t.ended:
			return t.answer(ctx, may)
		case q := <-asks:
			if said, ok := t.resume(q); ok {
				q.reply <- said
				continue
			}
			return t.deliverResult(q)
		case <-late:
			late, runs = nil, t.c.begun.started
		case <-runs:
			if r := t.convertToTask(ctx); r != nil {
				return r, nil
			}
			late, runs = time.After(lookAgain), nil
		case <-ctx.Done(): // the client cancelled the call
			t.stop(context.Cause(ctx))
			<-t.ended
			return t.r, t.err
		}
	}
}

// resume returns the responses that the first request contains, as a client
// sends them that repeats a call of a stateless server. Each counts once.
func (t *asyncCall) resume(q *clientRequest) (sdk.InputResponseMap, bool) {
	some := sdk.InputResponseMap{}
	for key := range q.what {
		if said, ok := t.early[key]; ok {
			some[key] = said
			delete(t.early, key)
		}
	}
	return some, len(some) > 0
}

// deliverResult returns the result that carries a client request.
func (t *asyncCall) deliverResult(q *clientRequest) (*wireResult, error) {
	t.mu.Lock()
	t.open, t.n = q, t.n+1
	held := t.claim()
	t.mu.Unlock()
	t.c.report.attach(context.Background(), nil)
	t.c.logSender.attach(context.Background(), nil)
	state, err := t.c.s.sealer.seal(held)
	if err != nil {
		return nil, err
	}
	r := newObject(t.c.revision)
	r.set("resultType", "input_required")
	r.set("inputRequests", q.what)
	r.set("requestState", state)
	return r, nil
}

// thought bounds the time of a response, if the call itself has no earlier
// deadline.
const thought = 24 * time.Hour

func (t *asyncCall) claim() requestState {
	return requestState{
		V: claimVersion, Session: t.c.st.session.ID(), AsyncCall: t.id, Round: t.n, Tool: string(t.c.tool.Digest()), Input: string(canon.SumBytes(t.c.input)),
		Expires: time.Now().Add(thought).UnixMilli(),
	}
}

// Capabilities returns the capabilities that the client reports.
func (t *asyncCall) Capabilities() *sdk.ClientCapabilities { return t.c.caps }

// Request asks the client, which responds by its next request.
func (t *asyncCall) Request(ctx context.Context, what sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	select {
	case t.requestLock <- struct{}{}:
		defer func() { <-t.requestLock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	q := &clientRequest{what: what, reply: make(chan sdk.InputResponseMap, 1)}
	select {
	case t.asks <- q:
	case <-t.apart:
		t.addRequest(q)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case said := <-q.reply:
		return said, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// goesOnWith returns the request state of a request that continues a call.
func (c *call) goesOnWith() (requestState, bool) {
	if c.req.Params.RequestState == "" {
		return requestState{}, false
	}
	held, err := c.s.sealer.open(c.req.Params.RequestState, c.st.session.ID(), time.Now())
	return held, err == nil && held.AsyncCall != ""
}

// goOn passes the responses of the client to the call, once, and waits for its
// next response.
func (c *call) goOn(ctx context.Context, held requestState) (*wireResult, error) {
	one, ok := c.s.runs.find(held.AsyncCall, c.st)
	if !ok || one.async == nil {
		return c.refused(errors.New("the call that this answers does not wait any more; txn_status tells how it ended")), nil
	}
	if string(c.tool.Digest()) != held.Tool || string(canon.SumBytes(c.input)) != held.Input {
		return c.refused(errClaim), nil
	}
	t := one.async
	q, ok := t.acceptResponses(held.Round)
	if !ok {
		return c.refused(errors.New("this was answered before; an answer counts once")), nil
	}
	t.c.report.attach(ctx, c.req)
	t.c.logSender.attach(ctx, c.req)
	q.reply <- c.req.Params.InputResponses
	return t.serveRequest(ctx, c)
}

// acceptResponses takes the open client request, if the responses are for it.
func (t *asyncCall) acceptResponses(round int) (*clientRequest, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.open
	if q == nil || t.n != round {
		return nil, false
	}
	t.open = nil
	return q, true
}
