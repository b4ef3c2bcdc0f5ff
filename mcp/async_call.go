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

// asyncCall is a call that goes on while its client is asked, or while its client does something else. A client of the newest revision
// is asked in a result, and answers by the next request; what the call's server wants to have back then stays here. Once it is a
// task, see task_state.go, no request attends it any more.
type asyncCall struct {
	*backgroundCall
	c     *call
	asks  chan *clientRequest  // one is handed to the request that is served
	early sdk.InputResponseMap // answers that came with the first request; its one reader is whoever attends
	r     *wireResult          // with err what it ended with
	err   error
	apart chan struct{} // closed when it is a task

	requestLock chan struct{}  // one question at a time
	mu          sync.Mutex     // never held across a wait
	open        *clientRequest // that the client was told of
	n           int            // which one it is
	taskState
}

// clientRequest is one question.
type clientRequest struct {
	what  sdk.InputRequestMap
	reply chan sdk.InputResponseMap // one answer
	said  sdk.InputResponseMap      // of a task: what is answered of it so far
}

func newAsyncCall(c *call) *asyncCall {
	t := &asyncCall{c: c, asks: make(chan *clientRequest), requestLock: make(chan struct{}, 1), apart: make(chan struct{})}
	t.backgroundCall = &backgroundCall{id: rand.Text(), st: c.st, talk: t}
	t.changes = make(chan struct{})
	return t
}

// runAsync runs the call, of which the request sees the end, the first question, or that it is a task.
func (c *call) runAsync(ctx context.Context, leave func()) (*wireResult, error) {
	t := newAsyncCall(c)
	t.early = maps.Clone(c.req.Params.InputResponses)
	c.report = &progressSender{told: -1}
	c.report.attach(ctx, c.req)
	if c.mayTask {
		c.begun = &startSignal{started: make(chan struct{})}
	}
	gone := c.s.seats.stay(c.st)
	c.s.runs.begin(ctx, t.backgroundCall, func(ctx context.Context) {
		defer gone()
		defer leave()
		defer t.finishTask()
		defer panics.Catch(c.s.opts.Log, methodCall, &t.err)
		t.r, t.err = c.runCaptured(clientctx.With(ctx, t))
	})
	return t.serveRequest(ctx, c)
}

// serveRequest waits for what the request of a call is answered with: the one that began it, or the one that goes on with it.
func (t *asyncCall) serveRequest(ctx context.Context, by *call) (*wireResult, error) {
	asks, late, runs := t.asks, (<-chan time.Time)(nil), (<-chan struct{})(nil)
	may := by.mayTask && t.c.begun != nil
	switch {
	case may && t.c.alwaysTask():
		asks, runs = nil, t.c.begun.started // it asks when it is a task
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
		case <-ctx.Done(): // the client wants the call no more
			t.stop(context.Cause(ctx))
			<-t.ended
			return t.r, t.err
		}
	}
}

// resume are answers that the request which began the call has brought along, as one does that repeats a call whose server
// keeps nothing. Each counts once.
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

// deliverResult is the result that asks.
func (t *asyncCall) deliverResult(q *clientRequest) (*wireResult, error) {
	t.mu.Lock()
	t.open, t.n = q, t.n+1
	held := t.claim()
	t.mu.Unlock()
	t.c.report.attach(context.Background(), nil)
	t.c.voice.attach(context.Background(), nil)
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

// thought is how long an answer may take to be given, where the call itself has no end before that.
const thought = 24 * time.Hour

func (t *asyncCall) claim() requestState {
	return requestState{
		V: claimVersion, Session: t.c.st.session.ID(), Talk: t.id, Round: t.n, Tool: string(t.c.tool.Digest()), Input: string(canon.SumBytes(t.c.input)),
		Expires: time.Now().Add(thought).UnixMilli(),
	}
}

// Capabilities is what the client says that it can.
func (t *asyncCall) Capabilities() *sdk.ClientCapabilities { return t.c.caps }

// Request asks the client, which answers by the next request.
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

// goesOnWith is the claim of a request that goes on with a call which asked.
func (c *call) goesOnWith() (requestState, bool) {
	if c.req.Params.RequestState == "" {
		return requestState{}, false
	}
	held, err := c.s.sealer.open(c.req.Params.RequestState, c.st.session.ID(), time.Now())
	return held, err == nil && held.Talk != ""
}

// goOn hands the answer of the client on, once, and waits for what comes of it.
func (c *call) goOn(ctx context.Context, held requestState) (*wireResult, error) {
	one, ok := c.s.runs.find(held.Talk, c.st)
	if !ok || one.talk == nil {
		return c.refused(errors.New("the call that this answers does not wait any more; txn_status tells how it ended")), nil
	}
	if string(c.tool.Digest()) != held.Tool || string(canon.SumBytes(c.input)) != held.Input {
		return c.refused(errClaim), nil
	}
	t := one.talk
	q, ok := t.acceptResponses(held.Round)
	if !ok {
		return c.refused(errors.New("this was answered before; an answer counts once")), nil
	}
	t.c.report.attach(ctx, c.req)
	t.c.voice.attach(ctx, c.req)
	q.reply <- c.req.Params.InputResponses
	return t.serveRequest(ctx, c)
}

// acceptResponses takes the question that is open, if it is the one that an answer is for.
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
