package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/clientctx"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// A call that lasts, or that waits for approval, is a task of the Tasks
// extension, for clients that support it. The task is the call: it has the
// call's ID, and its state comes from the journal, so it outlives the process.
// Only the process that runs it knows its client requests, and that it runs.

const tasksExtension = "io.modelcontextprotocol/tasks"

// The states of a task.
const (
	taskWorking   = "working"
	taskAsks      = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// taskParams holds the params of tasks/get, tasks/update and tasks/cancel.
type taskParams struct {
	sdk.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

type taskRequest = sdk.ServerRequest[*taskParams]

// addTasks registers the methods. The method receive serves them, as it knows
// the client.
func (s *Server) addTasks() error {
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		err := sdk.AddReceivingCustomMethod(s.sdk, method, func(context.Context, *sdk.ServerSession, *taskParams) (*wireResult, error) {
			return nil, errElsewhere
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tasks serves the methods of the extension.
func (s *Server) tasks(ctx context.Context, method string, req *taskRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	if req.Params == nil { // clients of an older revision can omit them
		return nil, unknownTask("")
	}
	c := &call{s: s, st: st, caps: req.ClientCapabilities(), client: req.ClientInfo(), revision: req.ProtocolVersion(), slot: &rawresult.Slot{}}
	if !c.clientSupportsTasks() {
		return nil, errTasksUnsupported()
	}
	id := req.Params.TaskID
	switch q, err := s.recorded(ctx, id, st); {
	case err != nil:
		if !errors.Is(err, journal.ErrNotFound) {
			s.opts.Log.Error("a task cannot be read", "call", id, "error", err)
		}
		return nil, unknownTask(id)
	case method == "tasks/get":
		return c.getTask(ctx, q)
	case method == "tasks/cancel":
		c.cancelTask(ctx, q)
	default:
		if err := c.updateTask(ctx, q, req.Params.InputResponses); err != nil {
			return nil, err
		}
	}
	return newObject(c.revision), nil
}

// unknownTask returns the error for an unknown task and for one of another
// session.
func unknownTask(id string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown task %q", id)}
}

// recorded finds a call of a session on the journal.
func (s *Server) recorded(ctx context.Context, id string, st *clientSession) (*approvalRequest, error) {
	if _, err := st.session.FindTxn(ctx, id); err != nil {
		return nil, err
	}
	t, c, err := revert.LoadCall(ctx, s.rt.Journal(), id)
	if err != nil {
		return nil, err
	}
	return &approvalRequest{t, c}, nil
}

// created responds to tools/call with a task.
func (c *call) created(q *approvalRequest) *wireResult {
	r := newObject(c.revision)
	status, until := taskWorking, time.Time{}
	if q.waits() {
		until = q.call.Asked.Expires
	} else if t, ok := c.s.runs.task(q.call.Ref.Call); ok {
		until = t.deadline
	}
	c.describeTask(r, q.call, status, until)
	r.set("resultType", "task")
	if q.waits() {
		r.set("statusMessage", waitsFor)
		r.note(metaStatus, tool.StatusPending)
	}
	r.note(metaCall, q.call.Ref.Call)
	r.note(metaTxn, q.txn.ID)
	return r
}

// waitsFor tells a client why a task waits. It names no command, as clients
// show it to models.
const waitsFor = "waits for approval by a person"

// describeTask sets the members of a task. Until is the time by which it ends
// by itself; zero: it has ended.
func (c *call) describeTask(r *wireResult, of *revert.Call, status string, until time.Time) {
	r.set("taskId", of.Ref.Call)
	r.set("status", status)
	r.set("createdAt", of.Began.UTC().Format(time.RFC3339Nano))
	updated := of.Began
	if !of.Ended.IsZero() {
		updated = of.Ended
	}
	r.set("lastUpdatedAt", updated.UTC().Format(time.RFC3339Nano))
	r.set("ttlMs", nil)
	if status == taskWorking || status == taskAsks {
		if !until.IsZero() {
			r.set("ttlMs", max(until.Sub(of.Began).Milliseconds(), 1))
		}
		r.set("pollIntervalMs", c.s.opts.TaskPollInterval.Milliseconds())
	}
}

// describe returns the state of a task that runs here.
func (c *call) describe(t *asyncCall) *wireResult {
	r := newObject(c.revision)
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := t.asked()
	status := taskWorking
	if len(asked) > 0 {
		status = taskAsks
	}
	c.describeTask(r, t.origin.call, status, t.deadline)
	r.set("lastUpdatedAt", t.at.UTC().Format(time.RFC3339Nano))
	if len(asked) > 0 {
		r.set("inputRequests", asked)
	}
	return r
}

// getTask returns the state of a task. It resumes a call that was approved or
// rejected meanwhile.
func (c *call) getTask(ctx context.Context, q *approvalRequest) (*wireResult, error) {
	if t, ok := c.running(q); ok {
		return c.describe(t), nil
	}
	id := q.call.Ref.Call
	if q.waits() && (q.call.Answered != nil || time.Now().After(q.call.Asked.Expires)) {
		if t := c.resumeApproved(ctx, q); t != nil {
			t.settle(ctx)
			if t, ok := c.running(q); ok {
				return c.describe(t), nil
			}
		}
	}
	// If the task ended here after q was read, the journal holds its end.
	q, err := c.s.recorded(ctx, id, c.st)
	if err != nil {
		return nil, err
	}
	out, err := c.st.session.Outcome(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.taskStatus(ctx, q, out)
}

// running finds the task if it runs in this process.
func (c *call) running(q *approvalRequest) (*asyncCall, bool) {
	t, ok := c.s.runs.task(q.call.Ref.Call)
	if !ok {
		return nil, false
	}
	select {
	case <-t.ended:
		return nil, false
	default:
		return t, true
	}
}

// taskStatus returns the state of a task by the journal.
func (c *call) taskStatus(ctx context.Context, q *approvalRequest, out tool.Outcome) (*wireResult, error) {
	r := newObject(c.revision)
	switch {
	case q.waits() && c.elicits():
		c.describeTask(r, q.call, taskAsks, q.call.Asked.Expires)
		r.set("inputRequests", sdk.InputRequestMap{q.key(): q.form(out)})
		r.set("statusMessage", waitsFor)
	case q.waits():
		c.describeTask(r, q.call, taskWorking, q.call.Asked.Expires)
		r.set("statusMessage", waitsFor)
	case q.call.Phase == revert.PhaseStarted && c.lives(ctx, q):
		c.describeTask(r, q.call, taskWorking, time.Time{})
	case q.call.Phase == revert.PhasePending: // its transaction was reverted
		c.describeTask(r, q.call, taskCancelled, time.Time{})
	case out.Status == tool.StatusCancelled:
		c.describeTask(r, q.call, taskCancelled, time.Time{})
		if out.Error != nil && out.Error.Why != "" {
			r.set("statusMessage", out.Error.Why)
		}
	default:
		return r, c.hasEnded(ctx, r, q, out)
	}
	return r, nil
}

// hasEnded sets the result of a task whose call has ended.
func (c *call) hasEnded(ctx context.Context, r *wireResult, q *approvalRequest, out tool.Outcome) error {
	if t, ok := c.st.session.Tool(q.call.Tool.Name); ok {
		c.tool = t
	}
	c.slot = rawresult.Kept(q.call.Notes)
	if slot, ok := c.st.rawResult(q.call.Ref.Call); ok {
		c.slot = slot
	}
	result, err := c.endedResult(ctx, out)
	var refusal *jsonrpc.Error
	switch {
	case err == nil:
		c.describeTask(r, q.call, taskCompleted, time.Time{})
		if out.Status == tool.StatusDone && out.Reverted != "" {
			setReverted(result, out)
		}
		r.set("result", result)
	case errors.As(err, &refusal):
		c.describeTask(r, q.call, taskFailed, time.Time{})
		r.set("error", refusal)
		r.set("statusMessage", refusal.Message)
	default:
		return err
	}
	return nil
}

// setReverted notes in a result that its effects were reverted: a client that reads
// it late must not rely on them.
func setReverted(result *wireResult, out tool.Outcome) {
	text := "The call was done, and has been reverted since."
	if out.Reverted != "all" {
		text = "The call was done, and has been reverted since, but not all of it."
	}
	result.set("content", []sdk.Content{&sdk.TextContent{Text: text}})
	delete(result.members, "structuredContent")
	result.set("isError", true)
	result.note(metaOutcome, details(out))
}

// lives reports whether the process that began a call can still run it.
func (c *call) lives(ctx context.Context, q *approvalRequest) bool {
	alive, err := c.s.rt.Journal().Alive(ctx, q.txn.Owner)
	return err != nil || alive
}

// resumeApproved runs a call that was approved or rejected. If two requests
// race, the second finds it running. It returns nil if the call cannot run now.
func (c *call) resumeApproved(ctx context.Context, q *approvalRequest) *asyncCall {
	id := q.call.Ref.Call
	done, dealt := c.st.lockAnswer(id)
	if !dealt {
		t, _ := c.s.runs.task(id)
		return t
	}
	apart := *c
	apart.logSender = &logSender{}
	t := newAsyncCall(&apart)
	if !t.tryConvert(q) {
		done()
		return nil
	}
	ctx = context.WithValue(ctx, clientKey{}, &apart)
	gone := c.s.sessions.stay(c.st)
	c.s.runs.begin(ctx, t.backgroundCall, func(ctx context.Context) {
		defer gone()
		defer done()
		defer t.finishTask()
		if err := apart.resumeInBackground(clientctx.With(ctx, t), q); err != nil {
			c.s.opts.Log.Warn("a call that was answered did not go on", "call", id, "error", err)
		}
	})
	return t
}

// settle waits for the end of a call or for a client request, at most for the
// poll interval.
func (t *asyncCall) settle(ctx context.Context) {
	poll := time.NewTimer(t.c.s.opts.TaskPollInterval)
	defer poll.Stop()
	news, asks := t.changed()
	if asks {
		return
	}
	select {
	case <-t.ended:
	case <-news:
	case <-poll.C:
	case <-ctx.Done():
	}
}

// resumeInBackground runs the rest of an answered call.
func (c *call) resumeInBackground(ctx context.Context, q *approvalRequest) error {
	id := q.call.Ref.Call
	tx, err := c.st.session.ResumeTxn(ctx, q.txn.ID)
	if err != nil {
		return err
	}
	w, _ := c.st.pendingCall(id)
	ctx, c.slot = rawresult.With(ctx)
	out, _ := tx.Resume(ctx, id, agent.OnStart(func(_ string, _ func(context.Context) error, note rawresult.Note) { c.slot.Last(note) }))
	if out.Status == tool.StatusPending {
		return nil
	}
	c.st.removePending(id)
	if w.alone {
		return c.end(ctx, tx, out.Status)
	}
	return nil
}

// key returns the key by which a client knows the approval request. Another
// approval request has another key.
func (q *approvalRequest) key() string {
	digest := q.call.Asked.Digest
	return keyApproval + "-" + digest[max(0, len(digest)-16):]
}

// updateTask takes the responses of the client. It ignores those that no
// request asked for.
func (c *call) updateTask(ctx context.Context, q *approvalRequest, said map[string]json.RawMessage) error {
	if t, ok := c.running(q); ok {
		return t.acceptInput(said)
	}
	if !q.waits() || !c.elicits() || said[q.key()] == nil {
		return nil
	}
	var answer sdk.ElicitResult
	if json.Unmarshal(said[q.key()], &answer) != nil || answer.Action == "" {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("inputResponses %q is no answer to what was asked", q.key())}
	}
	answered, err := c.acceptResponses(ctx, q, &answer)
	if err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the answer does not count: " + err.Error()}
	}
	if answered {
		c.resumeApproved(ctx, q)
	}
	return nil
}

// cancelTask stops a running call. It reverts the transaction of a pending
// single call, which has no effects.
func (c *call) cancelTask(ctx context.Context, q *approvalRequest) {
	if t, ok := c.running(q); ok {
		t.stop(errCancelled)
		return
	}
	if w, _ := c.st.pendingCall(q.call.Ref.Call); !w.alone || !q.waits() {
		return
	}
	if _, err := c.st.session.Revert(context.WithoutCancel(ctx), q.txn.ID, revert.Options{}); err != nil {
		c.s.opts.Log.Warn("a task that was cancelled was not reverted", "call", q.call.Ref.Call, "error", err)
		return
	}
	c.st.txnEnded(q.txn.ID)
}
