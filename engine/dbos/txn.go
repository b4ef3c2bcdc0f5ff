package dbosagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// client names the transactions of workflows on the journal.
const client = "dbos"

// Txn is the transaction of a workflow. Like the workflow, it is for one goroutine.
type Txn struct {
	e      *Engine
	ctx    dbos.Context
	id     string
	tx     *agent.Txn              // of this process; nil: a dead one began it, and nothing needed it since
	died   map[string]*revert.Call // the calls that a dead process left, once tx is here
	failed error                   // why nothing can run any more
}

// Run makes a transaction of the workflow of ctx and runs fn with it. It commits if fn returns no error, as agent.Session.Update
// does, and otherwise reverts; an error of the revert is joined to that of fn. If the policy asks about the commit, Run waits for
// the answer. Each Run has a session of its own, of principal who with the given options. In a workflow continued after a crash,
// fn runs again, and [Txn.Invoke] returns what is on record. So fn must be as deterministic as the rest of the workflow. The ID
// of the workflow must have 1 to 100 bytes of printable ASCII without spaces.
//
// When DBOS shuts down, Run returns an error and leaves the transaction open for the process that continues the workflow.
func Run[R any](ctx dbos.Context, e *Engine, who perm.Principal, fn func(tx *Txn) (R, error), opts ...agent.SessionOption) (R, error) {
	var none R
	if e == nil || fn == nil {
		return none, errors.New("dbosagent.Run needs an engine and a function")
	}
	tx, err := e.begin(ctx, who, opts)
	if err != nil {
		return none, err
	}
	finished := false
	defer func() {
		if !finished { // fn panicked, and DBOS records that as the workflow's error
			_ = tx.revert() //nolint:errcheck // the panic goes on, and Recover finds what is left
		}
	}()
	out, err := fn(tx)
	finished = true
	if err == nil {
		err = tx.failed // the function can have missed it
	}
	if err = tx.end(err); err != nil {
		return none, err
	}
	return out, nil
}

// ID returns the transaction's ID, with which remit log, diff and revert find it.
func (tx *Txn) ID() string { return tx.id }

// begun is what DBOS keeps of the beginning of a transaction.
type begun struct {
	Txn string `json:"txn"`
	For string `json:"for"` // workflow and step; a fork of the workflow has it too
}

// begin is a step. If the process dies between the beginning of the transaction and the record of the step, the step finds it
// again by what it is for.
func (e *Engine) begin(ctx dbos.Context, who perm.Principal, opts []agent.SessionOption) (*Txn, error) {
	workflow, err := dbos.GetWorkflowID(ctx)
	if err != nil {
		return nil, fmt.Errorf("dbosagent.Run is for the function of a workflow: %w", err)
	}
	outside, err := stepOf(ctx)
	if err != nil {
		return nil, err
	}
	tx := &Txn{e: e, ctx: ctx}
	did, err := dbos.RunAsStep(ctx, func(ctx context.Context) (b begun, err error) {
		step, err := stepOf(ctx)
		if err != nil {
			return b, err
		}
		b.For = workflow + "/" + step
		if step == outside {
			return b, errors.New("dbosagent.Run is for the function of a workflow, and not for a step of it: a step that is repeated would begin another transaction")
		}
		if !nameable(workflow) {
			return b, fmt.Errorf("the ID of the workflow is %.120q, and must have 1 to 100 bytes of printable ASCII without spaces", workflow)
		}
		var left bool
		if b.Txn, left = e.take(b.For); left {
			return b, nil
		}
		s, err := e.rt.Session(ctx, who, opts...)
		if err != nil {
			return b, err
		}
		tx.tx, err = s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: client, ID: b.For, Text: "workflow " + workflow}))
		if err != nil {
			return b, err
		}
		b.Txn = tx.tx.ID()
		return b, nil
	}, dbos.WithStepName("remit begin"))
	if of, step := cutStep(did.For); err == nil && of != workflow {
		return nil, fmt.Errorf("transaction %s belongs to workflow %s: fork that at step %s or before, so that the fork begins its own", did.Txn, of, step)
	}
	tx.id = did.Txn
	return tx, err
}

// open is the transaction in this process. It takes it over if another process began it.
func (tx *Txn) open(ctx context.Context) (*agent.Txn, error) {
	if tx.tx != nil {
		return tx.tx, nil
	}
	if ended, err := tx.e.ended(ctx, tx.id); err != nil || ended != "" {
		return nil, cmp.Or(err, fmt.Errorf("transaction %s is %s, and accepts no more calls: %w", tx.id, ended, journal.ErrNotOwner))
	}
	at, err := tx.e.rt.ResumeTxn(ctx, tx.id) // settles the calls that the dead process left
	if err != nil {
		return nil, err
	}
	t, err := tx.e.rt.Load(ctx, tx.id)
	if err != nil {
		return nil, err
	}
	tx.died = map[string]*revert.Call{}
	for _, c := range t.Calls {
		tx.died[c.Ref.Call] = c
	}
	tx.tx = at
	return at, nil
}

// end ends the transaction after its function.
func (tx *Txn) end(err error) error {
	if err == nil {
		return tx.commit()
	}
	// DBOS shuts down and the workflow goes on later, or another process has taken it over. A cancellation can look like both,
	// depending on what the workflow did when it came. A deadline cancels too, which DBOS records later.
	gone := tx.ctx.Err() != nil && !errors.Is(context.Cause(tx.ctx), context.DeadlineExceeded) || errors.Is(err, dbos.ErrConflictingWorkflowID)
	if gone && !tx.cancelled() {
		return err
	}
	return errors.Join(err, tx.revert())
}

func (tx *Txn) cancelled() bool {
	workflow, err := dbos.GetWorkflowID(tx.ctx)
	if err != nil {
		return false
	}
	status, err := tx.e.status(workflow)
	return err == nil && status == dbos.WorkflowStatusCancelled
}

// revert is no step, because a cancelled workflow takes none. It finds out by itself whether it happened before.
func (tx *Txn) revert() error {
	ctx := context.WithoutCancel(tx.ctx)
	switch ended, err := tx.e.ended(ctx, tx.id); {
	case err != nil || ended == record.KindAborted:
		return err
	case ended != "":
		return fmt.Errorf("transaction %s has committed: remit revert %s reverts it", tx.id, tx.id)
	}
	if _, err := tx.e.rt.Revert(ctx, tx.id, revert.Options{}); err != nil {
		return fmt.Errorf("revert of transaction %s: %w", tx.id, err)
	}
	return nil
}

// committed is what the journal says of a commit.
type committed struct {
	Waits   bool   `json:"waits,omitempty"`
	Refused string `json:"refused,omitempty"`
}

func (tx *Txn) commit() error {
	for {
		c, err := dbos.RunAsStep(tx.ctx, tx.commitStep, dbos.WithStepName("remit commit"))
		switch {
		case err != nil:
			return tx.end(err)
		case c.Refused != "":
			return fmt.Errorf("transaction %s: %s: %w", tx.id, c.Refused, tool.ErrDenied)
		case !c.Waits:
			return nil
		}
		if err := tx.wait(tx.commitAnswered); err != nil {
			return tx.end(err)
		}
	}
}

func (tx *Txn) commitStep(ctx context.Context) (c committed, err error) {
	switch ended, err := tx.e.ended(ctx, tx.id); {
	case err != nil:
		return c, err
	case ended == record.KindCommitted: // by a process that died before DBOS recorded it
		return c, nil
	case ended != "":
		return committed{Refused: "it was reverted"}, nil
	}
	at, err := tx.open(ctx)
	if err != nil {
		return c, err
	}
	err = at.Commit(ctx)
	var refused *agent.CommitError
	switch {
	case errors.As(err, &refused) && errors.Is(err, tool.ErrPending):
		return committed{Waits: true}, nil
	case errors.As(err, &refused) && errors.Is(err, tool.ErrDenied):
		return committed{Refused: err.Error()}, nil
	}
	return c, err
}

// stepOf names the step that ctx belongs to.
func stepOf(ctx context.Context) (string, error) {
	at, ok := ctx.(dbos.Context)
	if !ok {
		return "", errors.New("DBOS runs a step with another kind of context than it did")
	}
	n, err := dbos.GetStepID(at)
	return strconv.Itoa(n), err
}

// nameable reports whether a transaction can name a workflow, see agent.ForPrompt.
func nameable(workflow string) bool {
	return workflow != "" && len(workflow) <= 100 && strings.IndexFunc(workflow, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// cutStep takes apart what a transaction is for.
func cutStep(purpose string) (workflow, step string) {
	at := strings.LastIndexByte(purpose, '/')
	return purpose[:max(at, 0)], purpose[at+1:]
}
