package dbosagent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
)

// Engine connects a runtime to a DBOS context. It is safe for concurrent use.
type Engine struct {
	root dbos.Context
	rt   *agent.Runtime
	poll time.Duration

	mu   sync.Mutex
	left map[string]string // open transactions of dead processes, by what they are for
}

// Option sets a field of an [Engine].
type Option func(*Engine)

// Poll sets how often a workflow that waits for an answer looks for it. Default: a second.
func Poll(every time.Duration) Option { return func(e *Engine) { e.poll = every } }

// New returns an engine. root is the context of dbos.NewContext. The runtime must have a durable journal, and
// agent.SuspendForApproval if its policy asks.
func New(root dbos.Context, rt *agent.Runtime, opts ...Option) (*Engine, error) {
	if root == nil || rt == nil {
		return nil, errors.New("dbosagent.New needs a DBOS context and a runtime")
	}
	e := &Engine{root: root, rt: rt, poll: time.Second, left: map[string]string{}}
	for _, o := range opts {
		if o != nil {
			o(e)
		}
	}
	if e.poll <= 0 {
		return nil, fmt.Errorf("dbosagent.Poll: %v is not a time between two looks, such as 1s", e.poll)
	}
	return e, nil
}

// Recovery is the result of [Engine.Recover].
type Recovery struct {
	agent.Recovery
	// Compensated are the reports of the transactions of cancelled and failed workflows, which are now reverted.
	Compensated []revert.Report
	// Unknown are open transactions of workflows that this DBOS database does not have. They stay open.
	Unknown []string
}

// Recover settles the calls that dead processes left in flight, and reverts the open transactions of workflows that were
// cancelled or failed. Call it before dbos.Launch, which continues the other workflows. It can be repeated at any time.
func (e *Engine) Recover(ctx context.Context) (Recovery, error) {
	found, err := e.rt.Recover(ctx)
	r := Recovery{Recovery: found}
	if err != nil {
		return r, err
	}
	var failed []error
	for _, id := range found.Abandoned {
		if err := e.recoverTxn(ctx, id, &r); err != nil {
			failed = append(failed, fmt.Errorf("transaction %s: %w", id, err))
		}
	}
	return r, errors.Join(failed...)
}

func (e *Engine) recoverTxn(ctx context.Context, id string, r *Recovery) error {
	t, err := e.rt.Load(ctx, id)
	if err != nil || t.Prompt == nil || t.Prompt.Client != client {
		return err // of no workflow
	}
	workflow, _ := cutStep(t.Prompt.ID)
	switch status, err := e.status(workflow); {
	case err != nil:
		return err
	case status == "":
		r.Unknown = append(r.Unknown, id)
	case status == dbos.WorkflowStatusCancelled || status == dbos.WorkflowStatusError:
		rep, err := e.rt.Revert(ctx, id, revert.Options{})
		r.Compensated = append(r.Compensated, rep)
		return err
	default:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.left[t.Prompt.ID] = id
	}
	return nil
}

// take returns the open transaction that a dead process began for a step, before DBOS recorded the step.
func (e *Engine) take(purpose string) (txn string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	txn, ok = e.left[purpose]
	delete(e.left, purpose)
	return txn, ok
}

// status is that of a workflow, empty for one that does not exist.
func (e *Engine) status(workflow string) (dbos.WorkflowStatusType, error) {
	// Not with the workflow's own context: this is no step of it.
	found, err := dbos.ListWorkflows(e.root, dbos.WithFilterWorkflowIDs(workflow), dbos.WithFilterLoadInput(false), dbos.WithFilterLoadOutput(false))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].Status, nil
}

// ended is the kind of record that ended a transaction, empty while it is open.
func (e *Engine) ended(ctx context.Context, txn string) (record.Kind, error) {
	t, err := e.rt.Load(ctx, txn)
	if err != nil {
		return "", err
	}
	return t.End, nil
}
