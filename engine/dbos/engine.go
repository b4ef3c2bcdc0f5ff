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
	"github.com/remit-dev/remit/revert/journal"
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
	// Compensated are the reports of the transactions of cancelled and failed workflows, which are now reverted. As after each
	// revert, a report names what could not be restored.
	Compensated []revert.Report
	// Failed are transactions that could not be reverted here, for example because this program does not have a tool of theirs.
	// They stay open, and the next Recover tries again.
	Failed []Failure
	// Unknown are open transactions of workflows that this DBOS database does not have. They stay open.
	Unknown []string
}

// Failure is a transaction that could not be reverted, and why.
type Failure struct {
	Txn string
	Err error
}

// Recover reverts the open transactions that dead processes left of workflows that were cancelled, failed or ended without them. It
// touches no other transaction. Call it before dbos.Launch, which continues the other workflows, and from time to time: a workflow can be cancelled
// while no process has it. An error means that the journal or the database of DBOS could not be read.
func (e *Engine) Recover(ctx context.Context) (r Recovery, err error) {
	j := e.rt.Journal()
	open, err := j.Unfinished(ctx)
	if err != nil {
		return r, err
	}
	for _, o := range open {
		alive, err := journal.LooksAlive(ctx, j, o.Owner)
		if err == nil && !alive {
			err = e.recoverTxn(ctx, o.Txn, &r)
		}
		if err != nil {
			return r, fmt.Errorf("transaction %s: %w", o.Txn, err)
		}
	}
	return r, nil
}

func (e *Engine) recoverTxn(ctx context.Context, id string, r *Recovery) error {
	p, err := revert.PromptOf(ctx, e.rt.Journal(), id)
	if err != nil || p == nil || p.Client != client {
		return err // of no workflow
	}
	workflow, _ := cutStep(p.ID)
	switch status, err := e.status(workflow); {
	case err != nil:
		return err
	case status == "":
		r.Unknown = append(r.Unknown, id)
	case status == dbos.WorkflowStatusCancelled, status == dbos.WorkflowStatusError, status == dbos.WorkflowStatusSuccess:
		// A workflow that succeeded has committed: this is one that its process began and died before DBOS recorded that.
		rep, err := e.rt.Revert(ctx, id, revert.Options{})
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			r.Failed = append(r.Failed, Failure{id, err})
			break
		}
		r.Compensated = append(r.Compensated, rep)
	default:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.left[p.ID] = id
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
