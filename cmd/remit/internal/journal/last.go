package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// lastTxn returns the newest transaction with remaining effects, or an
// abandoned one. It returns "" if there is none. It also returns the newer
// calls of other transactions. A revert transaction has no effects of its own.
// It ignores the transactions of skip, a prompt that a running process still
// follows, and, if there are resources, calls that changed none of them.
func lastTxn(ctx context.Context, rt *agent.Runtime, skip map[string]bool, resources []string) (found string, over []passedOver, err error) {
	stop, j := errors.New("found"), rt.Journal()
	err = state.EachOwnTxn(ctx, rt, func(id string) error {
		if skip[id] {
			return nil
		}
		t, err := rt.Load(ctx, id)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(t.EffectiveCalls(), func(c *revert.Call) bool { return cannotRevert(c) || !changesAny(c, resources) })
		is := t.Reverts+t.Redoes == "" && len(left) > 0 || len(resources) == 0 && len(t.HeldCalls()) > 0
		if is && t.Prompt != nil && t.End == "" {
			alive, err := journal.LooksAlive(ctx, j, t.Owner)
			if err != nil || alive {
				over = append(over, passedOverCalls(t)...)
				return err
			}
		}
		if !is && len(resources) == 0 {
			is, err = abandoned(ctx, j, t)
		}
		if skip[t.Reverts+t.Redoes] {
			return err
		}
		if is && t.Reverts+t.Redoes != "" { // the user means its subject, if it worked in these folders
			of, failed := rt.Load(ctx, t.Reverts+t.Redoes)
			if err = failed; err == nil && slices.Contains(of.RevertedBy, id) {
				id = of.ID
			}
		}
		if err != nil {
			return err
		}
		if !is {
			over = append(over, passedOverCalls(t)...)
			return nil
		}
		found = id
		return stop
	})
	if errors.Is(err, stop) {
		err = nil
	}
	if found == "" {
		over = nil // no transaction was chosen before them
	}
	return found, over, err
}

// cannotRevert reports whether a revert of the call can do nothing: its records are
// erased, or its remaining effects are outside the observed roots.
func cannotRevert(c *revert.Call) bool {
	switch {
	case c.Phase == revert.PhaseErased:
		return true
	case c.Phase == revert.PhaseStarted:
		return false
	case !c.Observed():
		return neverReverts(c)
	case c.Reversal == nil || c.Reversal.Reverted == nil:
		return len(c.Changes) == 0 && c.Class() == effect.Pure
	}
	if c.Reversal.Reverting.Part {
		return c.RevertSummary() == "all"
	}
	return !slices.ContainsFunc(c.Reversal.Reverted.Results, func(r effect.Result) bool {
		return !r.Outcome.Clean() && !strings.HasPrefix(r.Resource, "tool://")
	})
}

// neverReverts reports whether a revert of the call has failed, and the next one
// fails too: its tool has no revert of its own, and it recorded no change.
func neverReverts(c *revert.Call) bool {
	tried := c.Reversal != nil && c.Reversal.Reverted != nil
	return tried && c.Phase == revert.PhaseDone && c.Class() == effect.Pivot && c.Tool.UndoVersion == "" && len(c.Changes) == 0
}

// abandoned reports whether a transaction holds claims, its process has ended
// and no call of it is pending.
func abandoned(ctx context.Context, j journal.Journal, t *revert.Txn) (bool, error) {
	waits := func(c *revert.Call) bool { return c.Phase == revert.PhasePending }
	holds := func(c *revert.Call) bool { return c.Started != nil && c.Class() != effect.Pure }
	if t.End != "" || slices.ContainsFunc(t.Calls, waits) {
		return false, nil
	}
	if t.Reverts+t.Redoes == "" && !slices.ContainsFunc(t.Calls, holds) {
		return false, nil
	}
	alive, err := journal.LooksAlive(ctx, j, t.Owner)
	return err == nil && !alive, err
}

// passedOver is a call that is newer than the transaction of --last.
type passedOver struct {
	Txn  string `json:"txn"`
	Call string `json:"call"`
	Tool string `json:"tool"`
	Why  string `json:"why"`

	left bool // something of the call is left, can come, or is unknown
}

// passedOverCalls returns the calls of a transaction that a revert does not change.
func passedOverCalls(t *revert.Txn) (over []passedOver) {
	if t.Reverts+t.Redoes != "" {
		return nil
	}
	for _, c := range slices.Backward(t.Calls) {
		over = append(over, passedOver{Txn: t.ID, Call: c.Ref.Call, Tool: c.Tool.Name, Why: passedOverReason(c), left: leavesSomething(c)})
	}
	return over
}

// leavesSomething reports whether a person who undoes the newest work must know
// that a newer call stays: it can still run, or effects of it are left that no
// report of a revert has named. A call that changed nothing is none.
func leavesSomething(c *revert.Call) bool {
	if c.Phase == revert.PhasePending || c.Phase == revert.PhaseHeld {
		return true
	}
	told := c.Reversal != nil && c.Reversal.Reverted != nil
	return c.HasEffects() && !told
}

// passedOverReason says why a revert of a call would do nothing.
func passedOverReason(c *revert.Call) string {
	switch {
	case c.Phase == revert.PhaseErased:
		return "its records were erased"
	case c.IsReverted():
		return "already reverted"
	case c.Phase == revert.PhasePending:
		return "it waits for approval"
	case c.Observed() && c.Reversal != nil:
		return "what was observed of already reverted; the rest is unknown"
	case c.Phase == revert.PhaseDone && len(c.Changes) == 0 && unreported(c):
		return "its agent reported no end, and no change of it is recorded"
	case c.Observed() && c.Phase == revert.PhaseDone:
		return "nothing was observed; its tool says that it only reads"
	case c.Phase == revert.PhaseDone:
		return "it changed nothing"
	case c.Phase == revert.PhaseFailed:
		return "it failed, and nothing of it is left"
	default:
		return "it is " + string(c.Phase)
	}
}

// unreported reports whether a coding agent did not report the end of a call,
// for example because a person declined it.
func unreported(c *revert.Call) bool {
	var out struct {
		Reported *bool `json:"reported"`
	}
	return strings.HasPrefix(c.Tool.Name, "client_") && c.Done != nil && json.Unmarshal(c.Done.Output, &out) == nil && out.Reported != nil && !*out.Reported
}

// maxPassed limits the calls that writePassed names.
const maxPassed = 5

// writePassed writes the newer calls that --last skipped and of which something
// is left.
func writePassed(p cli.Style, w io.Writer, over []passedOver, at *state.Workspace) {
	over = slices.DeleteFunc(slices.Clone(over), func(c passedOver) bool { return !c.left })
	for _, c := range over[:min(len(over), maxPassed)] {
		_, _ = fmt.Fprintf(w, "%s skipped: call %s of %s, %s: %s\n", p.Doubt("·"), c.Call, c.Txn, cli.Printable(c.Tool), c.Why)
	}
	if n := len(over) - maxPassed; n > 0 {
		_, _ = fmt.Fprintf(w, "%s skipped: %s more; %s lists them\n", p.Doubt("·"), cli.Count(n, "newer call"), at.Hint("log"))
	}
}
