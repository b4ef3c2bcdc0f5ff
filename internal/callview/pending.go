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
	open, err := j.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	var damage []error
	for _, o := range open {
		t, err := revert.Load(ctx, j, o.Txn)
		if err != nil {
			damage = append(damage, fmt.Errorf("transaction %s: %w", o.Txn, err))
			continue
		}
		if t.End != "" || t.Aborting {
			continue
		}
		alive, err := j.Alive(ctx, o.Owner)
		for _, c := range t.Calls {
			if c.Waits() && c.Asked != nil {
				out = append(out, Pending{t, c, alive || err != nil})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Pending) int { return a.Call.Began.Compare(b.Call.Began) })
	return out, errors.Join(damage...)
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
