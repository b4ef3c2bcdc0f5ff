package callview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// Pending is a call that waits for approval, with its transaction.
type Pending struct {
	Txn   *revert.Txn
	Call  *revert.Call
	Alive bool // the owner process of the transaction is running
}

// FindPending returns the pending calls, oldest first. An unreadable
// transaction does not hide the others: its error is joined.
func FindPending(ctx context.Context, j journal.Journal) (out []Pending, err error) {
	err = eachOpen(ctx, j, func(t *revert.Txn, alive bool) {
		if t.End != "" || t.Aborting {
			return
		}
		for _, c := range t.Calls {
			if c.Waits() && c.Asked != nil {
				out = append(out, Pending{t, c, alive})
			}
		}
	})
	slices.SortStableFunc(out, func(a, b Pending) int { return a.Call.Began.Compare(b.Call.Began) })
	return out, err
}

// PendingCommit is a transaction whose commit waits for approval.
type PendingCommit struct {
	Txn      *revert.Txn
	Decision revert.CommitDecision
	Alive    bool // the owner process of the transaction is running
}

// FindPendingCommits returns the transactions whose commit waits, oldest first,
// with errors as FindPending.
func FindPendingCommits(ctx context.Context, j journal.Journal) (out []PendingCommit, err error) {
	err = eachOpen(ctx, j, func(t *revert.Txn, alive bool) {
		if d, waits := t.WaitingCommit().Get(); waits {
			out = append(out, PendingCommit{t, d, alive})
		}
	})
	slices.SortStableFunc(out, func(a, b PendingCommit) int { return a.Decision.At.Compare(b.Decision.At) })
	return out, err
}

// eachOpen calls each for every open transaction, and whether its owner runs or
// can run. It joins the errors of unreadable ones.
func eachOpen(ctx context.Context, j journal.Journal, each func(t *revert.Txn, alive bool)) error {
	open, err := j.Unfinished(ctx)
	if err != nil {
		return err
	}
	var damage []error
	for _, o := range open {
		t, err := revert.Load(ctx, j, o.Txn)
		if err != nil {
			damage = append(damage, fmt.Errorf("transaction %s: %w", o.Txn, err))
			continue
		}
		alive, err := j.Alive(ctx, o.Owner)
		each(t, alive || err != nil)
	}
	return errors.Join(damage...)
}

// PendingInput returns the input of a pending call without its sensitive values.
// It hides the whole input of an unknown tool, unless an MCP server offers it.
func PendingInput(c *revert.Call, tools tool.Registry) json.RawMessage {
	t, known := tools.Get(c.Tool.Name)
	switch input := c.Input(); {
	case !known && !ofAServer(c.Asked.Access):
		return json.RawMessage(`"(hidden)"`)
	case input == nil:
		return json.RawMessage("null")
	case known:
		return HideArguments(input, t.Spec().Hints.Sensitive)
	default:
		return input
	}
}

// ofAServer reports whether a call is one of an MCP server's tool. Such a tool
// declares no sensitive arguments, and the approver must see them.
func ofAServer(accesses []record.Access) bool {
	return slices.ContainsFunc(accesses, func(a record.Access) bool {
		return a.Action == string(perm.Call) && strings.HasPrefix(a.Resource, "mcp://")
	})
}
