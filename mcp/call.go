package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/mcp/internal/trace"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// The keys of _meta in requests, beside those of the protocol.
const (
	metaCallID = "remit.dev/call-id" // the caller's ID of the call: the same ID and input run once, see agent.WithCallID
	// metaTxn, too: the open transaction that the call joins
)

// call is one tools/call.
type call struct {
	s         *Server
	st        *clientSession
	req       *sdk.CallToolRequest // nil for a call that continues without a request
	caps      *sdk.ClientCapabilities
	client    *sdk.Implementation
	tool      tool.Tool
	input     json.RawMessage
	revision  string
	txn       string       // named by the request, or the current transaction
	named     string       // call ID of the caller
	mayTask   bool         // the server can respond with a task
	begun     *startSignal // of a call that can become a task; else nil
	slot      *rawresult.Slot
	report    *progressSender
	logSender *logSender
	asked     int // how often this request asked the user
}

// callTool responds to tools/call.
func (s *Server) callTool(ctx context.Context, req *sdk.CallToolRequest) (*wireResult, error) {
	return s.callFor(ctx, req, true)
}

func (s *Server) newCall(st *clientSession, req *sdk.CallToolRequest) *call {
	return &call{s: s, st: st, req: req, caps: req.ClientCapabilities(), client: req.ClientInfo(), revision: req.ProtocolVersion(), slot: &rawresult.Slot{}}
}

// callFor responds to a request by a call. It responds with a task if task is
// true and the client supports tasks.
func (s *Server) callFor(ctx context.Context, req *sdk.CallToolRequest, task bool) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	return s.newCall(st, req).serve(ctx, task)
}

// serve finds the tool, runs the call and returns its response.
func (c *call) serve(ctx context.Context, task bool) (r *wireResult, err error) {
	s, st, req := c.s, c.st, c.req
	c.mayTask = task && c.clientSupportsTasks()
	if t, ok := s.transactionTool(req.Params.Name); ok {
		leave, err := st.acquireCallSlot(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		return t.run(ctx, c)
	}
	c.tool, err = s.called(ctx, st.session, req.Params.Name)
	var absent *absentError
	if errors.As(err, &absent) {
		return c.refused(absent), nil
	}
	if err != nil {
		return nil, err
	}
	if task && c.alwaysTask() && !c.mayTask {
		if c.hidden(ctx) {
			return nil, unknownTool(req.Params.Name)
		}
		return nil, errTasksUnsupported()
	}
	return c.begin(ctx)
}

// begin runs the call or continues it.
func (c *call) begin(ctx context.Context) (*wireResult, error) {
	st, req := c.st, c.req
	if err := c.read(); err != nil {
		return c.refused(err), nil
	}
	ctx = context.WithValue(trace.From(ctx, req.Params.Meta), clientKey{}, c)
	if held, ok := c.goesOnWith(); ok {
		return c.goOn(ctx, held)
	}
	if r, ok := c.existingTask(); ok {
		return r, nil
	}
	leave, err := st.acquireCallSlot(ctx)
	if err != nil {
		return nil, err
	}
	c.logSender = &logSender{}
	c.logSender.attach(ctx, req)
	ctx = clientctx.WithLog(ctx, clientctx.Log{Session: st.session.ID(), Level: c.level(), Say: c.logSender.say})
	asks := c.mayBeAsked() || c.elicits() // by the tool, or for an approval while the call runs
	if c.mayTask || asks && c.revision >= stateless {
		return c.runAsync(ctx, leave)
	}
	defer leave()
	if asks {
		ctx = clientctx.With(ctx, directRequester{c})
	}
	return c.run(ctx)
}

// run runs the call and reports its progress to the client.
func (c *call) run(ctx context.Context) (*wireResult, error) {
	c.report = newReporter(ctx, c.req)
	return c.runCaptured(ctx)
}

func (c *call) runCaptured(ctx context.Context) (*wireResult, error) {
	ctx, c.slot = rawresult.With(ctx)
	defer c.report.flush()
	return c.answer(ctx)
}

// read parses the request.
func (c *call) read() (err error) {
	if c.input, err = arguments(c.tool, c.req.Params.Arguments); err != nil {
		return err
	}
	if c.txn, err = textIn(c.req.Params.Meta, metaTxn); err != nil {
		return err
	}
	if c.named, err = textIn(c.req.Params.Meta, metaCallID); err != nil {
		return err
	}
	if c.txn == "" {
		now := c.st.currentTxn()
		c.txn, err = now.txn, now.err()
	}
	return err
}

func textIn(meta sdk.Meta, key string) (string, error) {
	value, ok := meta[key]
	if !ok || value == nil {
		return "", nil
	}
	text, ok := value.(string)
	if !ok || text == "" {
		return "", fmt.Errorf("_meta %q is a text that is not empty; leave it out for none", key)
	}
	return text, nil
}

// answer runs the call, or resumes a pending one, and returns its result.
func (c *call) answer(ctx context.Context) (*wireResult, error) {
	if c.req.Params.RequestState != "" {
		return c.redeem(ctx)
	}
	if w, ok := c.st.matchPending(c.tool, c.input, c.txn); ok && c.named == "" {
		return c.resume(ctx, w)
	}
	opts := c.listeners()
	if c.named != "" {
		opts = append(opts, agent.WithCallID(c.named))
	}
	if c.txn != "" {
		tx, err := c.st.session.ResumeTxn(ctx, c.txn)
		if err != nil {
			return c.refused(c.closed(err)), nil
		}
		out, _ := tx.Invoke(ctx, c.tool.QualifiedName(), c.input, opts...)
		if w, ok := c.st.pendingCall(out.Call); ok && c.named != "" {
			return c.resume(ctx, w)
		}
		return c.finish(ctx, tx, false, out)
	}
	if !c.st.hasTxnCapacity(c.s.opts.MaxTxnsPerSession) {
		return c.refused(errTooMany), nil
	}
	out, err := c.st.session.Call(ctx, c.tool.QualifiedName(), c.input, opts...)
	if w, ok := c.st.pendingCall(out.Call); ok && c.named != "" {
		return c.resume(ctx, w)
	}
	return c.finishAlone(ctx, out, err)
}

// finishAlone returns the result of a call with its own transaction. The
// transaction has ended, or is open while the call is pending.
func (c *call) finishAlone(ctx context.Context, out tool.Outcome, err error) (*wireResult, error) {
	switch {
	case out.Status == tool.StatusPending:
		tx, err := c.st.session.ResumeTxn(ctx, out.Txn)
		if err != nil {
			return c.refused(fmt.Errorf("the transaction of the call that waits is not open any more: %w", err)), nil
		}
		c.st.txnOpened(out.Txn)
		return c.ask(ctx, tx, true, out)
	case out.Status.OK() && waitsForCommit(err): // the outcome says it
		c.st.txnOpened(out.Txn)
	case out.Status.OK() && err != nil:
		return c.uncommitted(out, err), nil
	case err != nil && err.Error() != out.Err().Error(): // err says more than the outcome
		c.s.opts.Log.Warn("a call that did not end well was not all reverted", "txn", out.Txn, "error", err)
	}
	return c.endedResult(ctx, out)
}

// listeners returns the options by which the server observes a running call.
func (c *call) listeners() []agent.CallOption {
	opts := []agent.CallOption{c.report.option(), agent.OnAsked(c.askInside)}
	if c.begun != nil {
		opts = append(opts, agent.OnStart(func(call string, keep func(context.Context) error, note rawresult.Note) {
			c.slot.Last(note)
			c.begun.set(call, keep)
		}))
	}
	return opts
}

// closed returns why a transaction cannot continue. The text is the same for an
// unknown transaction and for one of another session.
func (c *call) closed(err error) error {
	if errors.Is(err, agent.ErrTxnEnded) || errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrNotOwner) {
		c.st.lost(c.txn)
	}
	c.s.opts.Log.Debug("a call named a transaction that it cannot be in", "txn", c.txn, "error", err)
	return fmt.Errorf("transaction %q is not open in this session; begin one with txn_begin, or leave %s out", c.txn, metaTxn)
}

// resume resumes a pending call.
func (c *call) resume(ctx context.Context, w pendingApproval) (*wireResult, error) {
	tx, err := c.st.session.ResumeTxn(ctx, w.txn)
	if err != nil {
		c.st.txnEnded(w.txn)
		return c.refused(fmt.Errorf("the transaction of the call that waited is not open any more: %w", err)), nil
	}
	out, _ := tx.Resume(ctx, w.call, c.listeners()...)
	return c.finish(ctx, tx, w.alone, out)
}

// finish returns the result of an outcome, and ends the transaction if the call
// has its own.
func (c *call) finish(ctx context.Context, tx *agent.Txn, alone bool, out tool.Outcome) (*wireResult, error) {
	if out.Status == tool.StatusPending {
		return c.ask(ctx, tx, alone, out)
	}
	c.st.removePending(out.Call)
	if alone {
		if err := c.end(ctx, tx, out.Status); err != nil {
			return c.uncommitted(out, err), nil
		}
	}
	return c.endedResult(ctx, out)
}

// endedResult returns the result of a call that has ended.
func (c *call) endedResult(ctx context.Context, out tool.Outcome) (*wireResult, error) {
	if (out.Status == tool.StatusDenied || out.Status == tool.StatusInvalid || out.Stage == "policy") && c.hidden(ctx) {
		return nil, unknownTool(c.nameAsked())
	}
	if err := c.refusal(out); err != nil {
		return nil, err
	}
	return c.result(out), nil
}

// nameAsked returns the name of the tool in the request.
func (c *call) nameAsked() string {
	if c.req == nil {
		return c.tool.Name()
	}
	return c.req.Params.Name
}

// end ends the transaction of a single call. It reverts the transaction if it
// does not commit it.
func (c *call) end(ctx context.Context, tx *agent.Txn, s tool.Status) error {
	ctx = context.WithoutCancel(ctx)
	if s.OK() {
		err := tx.Commit(ctx)
		if waitsForCommit(err) { // txn_commit ends it, after the answer
			c.st.txnOpened(tx.ID())
			return err
		}
		c.st.txnEnded(tx.ID())
		return err
	}
	defer c.st.txnEnded(tx.ID())
	if _, err := tx.Revert(ctx, revert.Options{}); err != nil {
		c.s.opts.Log.Warn("a call that did not end well was not all reverted", "txn", tx.ID(), "error", err)
	}
	return nil
}

// waitsForCommit reports whether a transaction is open because its commit waits
// for an approval.
func waitsForCommit(err error) bool {
	var gate *agent.CommitError
	return errors.As(err, &gate) && errors.Is(err, tool.ErrPending)
}

// hidden reports whether the tool is hidden from the session: a refusal must
// not reveal it.
func (c *call) hidden(ctx context.Context) bool {
	_, shown := shownTool(context.WithoutCancel(ctx), c.st.session, c.tool.Name())
	return !shown
}

// absentError says that the upstream of a tool is not available, and why.
type absentError struct{ why error }

// Error returns why the upstream is not available.
func (e *absentError) Error() string { return e.why.Error() }

// called finds the tool that a client names, as its session sees it. It waits
// for the upstream of the tool if that has not responded yet.
func (s *Server) called(ctx context.Context, in *agent.Session, name string) (tool.Tool, error) {
	t, err := s.known(in, name)
	a, waits := s.opts.Mirror.(Awaiter)
	if err == nil || !waits {
		return t, err
	}
	if why := a.AwaitTool(ctx, name); why != nil {
		return tool.Tool{}, &absentError{why}
	}
	return s.known(in, name)
}

// known finds a tool that is available now.
func (s *Server) known(in *agent.Session, name string) (tool.Tool, error) {
	asked, known := name, false
	if s.opts.Mirror != nil {
		if other, ok := s.opts.Mirror.UpstreamTool(name); ok {
			asked, known = other, true
		}
	}
	t, ok := in.Tool(asked)
	if ok && !known && s.opts.Mirror != nil {
		_, mirrored := s.opts.Mirror.UpstreamDefinition(t)
		ok = !mirrored // an upstream tool has one name here: another one
	}
	if !ok {
		return tool.Tool{}, unknownTool(name)
	}
	return t, nil
}

func unknownTool(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
}

// arguments returns the input of a tool from the arguments that carry it.
func arguments(t tool.Tool, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage(`{}`)
	}
	_, wrapped := inputSchema(t)
	if !wrapped {
		return args, nil
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, errors.New("the arguments are no object")
	}
	input, ok := in[member]
	if !ok || len(in) != 1 {
		return nil, fmt.Errorf("the arguments are one object with the one member %q", member)
	}
	return input, nil
}
