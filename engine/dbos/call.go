package dbosagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// called is what DBOS keeps of a call.
type called struct {
	Call   string      `json:"call"`
	ID     string      `json:"id"` // of the step
	Status tool.Status `json:"status"`
	// Outcome is set for a call that is not on the journal, such as one of a tool that does not exist.
	Outcome *tool.Outcome `json:"outcome,omitempty"`
}

func (c called) waits() bool { return c.Status == tool.StatusPending }

// Invoke runs one call as a step of the workflow, and returns its outcome as agent.Txn.Invoke does: an error for every outcome
// but done. If the policy asks, Invoke waits for the answer. In a continued workflow it returns the outcome that is on the journal,
// without running anything, and an error if the call is not the one that is on record. The outcome is zero for errors of the
// engine: the workflow was cancelled, or a record could not be written. After one, no call runs, and Run reverts. An outcome that
// is unknown, because the process died while the call ran, is returned as such: recovery does not guess, and neither does Invoke.
func (tx *Txn) Invoke(name string, input any) (tool.Outcome, error) {
	if tx.failed != nil {
		return tool.Outcome{}, tx.failed
	}
	var here tool.Outcome
	did, err := dbos.RunAsStep(tx.ctx, func(ctx context.Context) (did called, err error) {
		here, did, err = tx.call(ctx, name, input)
		return did, err
	}, dbos.WithStepName("remit "+name))
	for err == nil && did.waits() {
		call, id := did.Call, did.ID
		if err = tx.wait(func(ctx context.Context) (bool, error) { return tx.answered(ctx, call) }); err != nil {
			break
		}
		did, err = dbos.RunAsStep(tx.ctx, func(ctx context.Context) (did called, err error) {
			here, did, err = tx.resume(ctx, call, id)
			return did, err
		}, dbos.WithStepName("remit resume"))
	}
	if err == nil {
		here, err = tx.outcome(here, did, name, input)
	}
	if err != nil {
		tx.failed = err
		return tool.Outcome{}, err
	}
	return here, here.Err()
}

// call runs the call of a step, or finds it. Its own error means that DBOS must record nothing.
func (tx *Txn) call(ctx context.Context, name string, input any) (tool.Outcome, called, error) {
	step, err := stepOf(ctx)
	if err != nil {
		return tool.Outcome{}, called{}, err
	}
	at, err := tx.open(ctx)
	if err != nil {
		return tool.Outcome{}, called{}, err
	}
	for attempt := 1; ; attempt++ {
		id := fmt.Sprint(step, "/", attempt)
		out, _ := at.Invoke(ctx, name, input, agent.WithCallID(id)) //nolint:errcheck // Err has it again
		if err := ctx.Err(); err != nil {
			return out, called{}, err
		}
		again, err := tx.again(ctx, out)
		if err != nil {
			return out, called{}, err
		}
		if !again {
			did, err := tx.recorded(ctx, id, out)
			return out, did, err
		}
	}
}

// again reports whether the call of a step must run again: an attempt that ended with its process, and has no effect, or none any
// more. An effect that nobody verified, but that remit can take back exactly, is reverted for this.
func (tx *Txn) again(ctx context.Context, out tool.Outcome) (bool, error) {
	c := tx.died[out.Call]
	switch {
	case c == nil:
		return false, nil
	case c.Failed != nil && c.Failed.Proof != "", c.IsReverted():
		return true, nil
	case c.Done == nil || out.Status != tool.StatusUnknown || !c.Confined():
		return false, nil
	}
	_, err := tx.e.rt.Revert(ctx, out.Call, revert.Options{})
	return err == nil, err
}

func (tx *Txn) resume(ctx context.Context, call, id string) (tool.Outcome, called, error) {
	at, err := tx.open(ctx)
	if err != nil {
		return tool.Outcome{}, called{}, err
	}
	out, _ := at.Resume(ctx, call) //nolint:errcheck // Err has it again
	if err := ctx.Err(); err != nil {
		return out, called{}, err
	}
	did, err := tx.recorded(ctx, id, out)
	return out, did, err
}

func (tx *Txn) recorded(ctx context.Context, id string, out tool.Outcome) (called, error) {
	did := called{Call: out.Call, ID: id, Status: out.Status}
	if out.Status == tool.StatusDone || did.waits() {
		return did, nil
	}
	_, err := tx.e.rt.Outcome(ctx, out.Call)
	if errors.Is(err, journal.ErrNotFound) {
		did.Outcome, err = &out, nil
	}
	return did, err
}

// outcome is that of a call of this process, or of the journal.
func (tx *Txn) outcome(here tool.Outcome, did called, name string, input any) (tool.Outcome, error) {
	switch {
	case here.Status != "":
		return here, nil
	case did.Outcome != nil:
		return *did.Outcome, nil
	}
	ended, err := tx.e.ended(tx.ctx, tx.id)
	if err != nil {
		return here, err
	}
	if ended != "" {
		here, err = tx.e.rt.Outcome(tx.ctx, did.Call)
	} else if at, failed := tx.open(tx.ctx); failed != nil {
		err = failed
	} else {
		here, _ = at.Invoke(tx.ctx, name, input, agent.WithCallID(did.ID)) //nolint:errcheck // Err has it again
	}
	switch {
	case err != nil:
		return here, err
	case here.Status == tool.StatusInvalid && did.Status != tool.StatusInvalid:
		return here, fmt.Errorf("the function of the workflow is not deterministic, this call is another than before: %s", here.Text)
	case here.Status == tool.StatusUnknown && did.Status == tool.StatusDone:
		return tx.verified(here)
	}
	return here, nil
}

// verified is the outcome of a call that was done and verified when its process recorded the step. The journal alone cannot tell
// that, for example if the declaration of the tool has changed since.
func (tx *Txn) verified(out tool.Outcome) (tool.Outcome, error) {
	c, err := revert.ReadCall(tx.ctx, tx.e.rt.Journal(), tx.id, out.Call)
	if err != nil || c.Done == nil {
		return out, err
	}
	output := c.Done.Output
	if c.Done.Delivered != nil {
		output = c.Done.Delivered
	}
	if err := canon.Decode(output, &out.Result); err != nil {
		return out, err
	}
	out.Status, out.Error, out.Output, out.Text = tool.StatusDone, nil, out.Result.Output(), out.Result.Text
	if out.Text == "" {
		out.Text = string(out.Result.JSON)
	}
	return out, nil
}

// wait looks from time to time until something has happened, or the workflow is over. It is no step: the event is on the
// journal, and a process that continues the workflow looks again.
func (tx *Txn) wait(happened func(context.Context) (bool, error)) error {
	tick := time.NewTicker(tx.e.poll)
	defer tick.Stop()
	for {
		if yes, err := happened(tx.ctx); yes || err != nil {
			return err
		}
		if tx.cancelled() {
			return nil // the next step says so
		}
		select {
		case <-tx.ctx.Done():
			return tx.ctx.Err()
		case <-tick.C:
		}
	}
}

func (tx *Txn) answered(ctx context.Context, call string) (bool, error) {
	c, err := revert.ReadCall(ctx, tx.e.rt.Journal(), tx.id, call)
	if err != nil {
		return false, err
	}
	return !c.Waits() || c.Answered != nil || c.Asked != nil && !c.Asked.Expires.After(time.Now()), nil
}

func (tx *Txn) commitAnswered(ctx context.Context) (bool, error) {
	t, err := tx.e.rt.Load(ctx, tx.id)
	if err != nil {
		return false, err
	}
	c, waits := t.WaitingCommit().Get()
	return !waits || c.Answered != nil || c.Decided != nil && !c.Decided.Expires.After(time.Now()), nil
}
