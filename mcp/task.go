package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/raw"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// A call that waits for approval elsewhere is a task of the Tasks extension, for clients that know it. The task is the call:
// its id is the call's, and how it stands is read from the journal each time, so it outlives the process.

const tasksExtension = "io.modelcontextprotocol/tasks"

// pollMillis is how often a client should ask how a task stands.
const pollMillis = 2000

// taskParams are those of tasks/get, tasks/update and tasks/cancel.
type taskParams struct {
	sdk.ParamsBase
	TaskID         string               `json:"taskId"`
	InputResponses sdk.InputResponseMap `json:"inputResponses,omitempty"`
}

type taskRequest = sdk.ServerRequest[*taskParams]

// addTasks registers the methods. They are answered by receive, which knows who asks.
func (s *Server) addTasks() error {
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		err := sdk.AddReceivingCustomMethod(s.sdk, method, func(context.Context, *sdk.ServerSession, *taskParams) (*object, error) {
			return nil, fmt.Errorf("mcp: %s is answered elsewhere", method)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// task is the answer to tools/call of a call that waits.
func (c *call) task(q *question) *object {
	r := newObject(c.revision)
	describeTask(r, q, "working")
	r.set("resultType", "task")
	r.note(metaStatus, tool.StatusPending)
	r.note(metaCall, q.call.Ref.Call)
	r.note(metaTxn, q.txn.ID)
	return r
}

func describeTask(r *object, q *question, status string) {
	r.set("taskId", q.call.Ref.Call)
	r.set("status", status)
	r.set("createdAt", q.call.Began.UTC().Format(time.RFC3339))
	updated := q.call.Began
	if !q.call.Ended.IsZero() {
		updated = q.call.Ended
	}
	r.set("lastUpdatedAt", updated.UTC().Format(time.RFC3339))
	r.set("ttlMs", nil)
	if status == "working" {
		r.set("pollIntervalMs", pollMillis)
		r.set("statusMessage", "waits for approval: remit approve "+q.call.Ref.Call)
	}
}

// tasks answers the methods of the extension.
func (s *Server) tasks(ctx context.Context, method string, req *taskRequest) (*object, error) {
	st, err := s.seatOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	_, err = st.in.Find(ctx, req.Params.TaskID)
	var q *question
	if err == nil {
		q, err = s.question(ctx, req.Params.TaskID)
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown task %q", req.Params.TaskID)}
	}
	c := &call{s: s, st: st, revision: req.ProtocolVersion(), slot: &raw.Slot{}}
	switch method {
	case "tasks/get":
		return c.getTask(ctx, q)
	case "tasks/cancel":
		c.cancelTask(ctx, q)
	}
	return newObject(c.revision), nil // tasks/update: none of these tasks asks its client for anything
}

// getTask says how a task stands, and lets a call go on that was answered meanwhile.
func (c *call) getTask(ctx context.Context, q *question) (*object, error) {
	r := newObject(c.revision)
	out, err := c.st.in.Outcome(ctx, q.call.Ref.Call)
	if err != nil {
		return nil, err
	}
	if q.waits() && (q.call.Answered != nil || time.Now().After(q.call.Asked.Expires)) {
		if out, err = c.letGoOn(ctx, q); err != nil {
			return nil, err
		}
		if q, err = c.s.question(ctx, q.call.Ref.Call); err != nil {
			return nil, err
		}
	}
	switch {
	case q.waits() || q.call.Phase == revert.PhaseStarted:
		describeTask(r, q, "working")
	case q.call.Phase == revert.PhasePending, out.Status == tool.StatusCancelled: // its transaction was taken back, or it was stopped
		describeTask(r, q, "cancelled")
	default:
		describeTask(r, q, "completed")
		if t, ok := c.st.in.Tool(q.call.Tool.Name); ok {
			c.tool = t
		}
		r.set("result", c.result(out))
	}
	return r, nil
}

// letGoOn runs a call that was answered, and waits for it as long as the client would before it asks again. Of two that ask at
// once one finds it running.
func (c *call) letGoOn(ctx context.Context, q *question) (tool.Outcome, error) {
	id := q.call.Ref.Call
	one, ok := c.s.runs.find(id, c.st)
	if !ok {
		done, dealt := c.st.deal(id)
		if !dealt {
			return c.st.in.Outcome(ctx, id)
		}
		one = &running{id: id, st: c.st, task: &task{}}
		gone := c.s.seats.stay(c.st)
		c.s.runs.begin(ctx, one, func(ctx context.Context) {
			defer gone()
			defer done()
			apart := *c
			one.task.out, one.task.err = apart.goesOnApart(ctx, q)
			one.task.slot = apart.slot
		})
	}
	poll := time.NewTimer(pollMillis * time.Millisecond)
	defer poll.Stop()
	select {
	case <-one.ended:
		c.slot = one.task.slot
		return one.task.out, one.task.err
	case <-poll.C:
	case <-ctx.Done():
	}
	return c.st.in.Outcome(context.WithoutCancel(ctx), id)
}

// task is what a call that was answered came to.
type task struct {
	out  tool.Outcome
	err  error
	slot *raw.Slot
}

// goesOnApart is the rest of a call that was answered.
func (c *call) goesOnApart(ctx context.Context, q *question) (tool.Outcome, error) {
	id := q.call.Ref.Call
	tx, err := c.st.in.Open(ctx, q.txn.ID)
	if err != nil {
		return tool.Outcome{}, err
	}
	w, _ := c.st.waitingCall(id)
	ctx, c.slot = raw.With(ctx)
	out, _ := tx.Resume(ctx, id)
	if out.Status == tool.StatusPending {
		return out, nil
	}
	c.st.goesOn(id)
	if w.alone {
		if err := c.end(ctx, tx, out.Status); err != nil {
			return tool.Outcome{}, err
		}
	}
	return out, nil
}

var errCancelled = errors.New("the client cancelled the task")

// cancelTask stops a call that runs, and takes the transaction of one that waits by itself back, with nothing in it.
func (c *call) cancelTask(ctx context.Context, q *question) {
	if one, ok := c.s.runs.find(q.call.Ref.Call, c.st); ok {
		one.stop(errCancelled)
		return
	}
	if w, _ := c.st.waitingCall(q.call.Ref.Call); !w.alone || !q.waits() {
		return
	}
	if _, err := c.st.in.Revert(context.WithoutCancel(ctx), q.txn.ID); err != nil {
		c.s.opts.Log.Warn("a task that was cancelled was not taken back", "call", q.call.Ref.Call, "error", err)
		return
	}
	c.st.ended(q.txn.ID)
}
