package console

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// listedCalls limits the calls that a list shows of one transaction.
const listedCalls = 200

// callLine is a call in a list.
type callLine = callview.Line

// txnBox is a transaction with its calls.
type txnBox struct {
	ID, State, Kind string
	Session, Who    string
	Began           time.Time
	Reverts, Redoes string
	RevertedBy      []string
	Calls           []callLine
	More            int // further calls
	Skip            int // calls before those
	Live            bool
	CanRevert       bool
	Waits           bool // its commit waits for an answer
}

// group is a prompt with its transactions, or one transaction without a prompt.
type group struct {
	Prompt *promptLine
	Txns   []txnBox
}

type promptLine struct{ ID, Client, Text string }

// CanRevert reports whether a shown transaction of the prompt left something that
// a revert takes back.
func (g group) CanRevert() bool {
	return slices.ContainsFunc(g.Txns, func(b txnBox) bool { return b.CanRevert })
}

func (c *Console) lineOf(call *revert.Call) callLine {
	return callview.LineOf(call, c.sensitive(call.Tool.Name))
}

// sensitive returns the names of a tool's sensitive arguments.
func (c *Console) sensitive(name string) []string {
	t, known := c.Runtime.Tools().Get(name)
	if !known {
		return nil
	}
	return t.Spec().Hints.Sensitive
}

// boxOf returns a transaction for a list.
func (c *Console) boxOf(ctx context.Context, t *revert.Txn) txnBox { return c.boxFrom(ctx, t, 0) }

// boxFrom returns a transaction without its first calls.
func (c *Console) boxFrom(ctx context.Context, t *revert.Txn, skip int) txnBox {
	b := txnBox{
		ID: t.ID, State: string(t.State()), Session: t.Session, Who: c.principal(ctx, t.Session), Began: t.Began, Reverts: t.Reverts, Redoes: t.Redoes, RevertedBy: t.RevertedBy,
	}
	b.Kind = callview.StatusKind(b.State)
	if t.End == "" {
		alive, err := c.Runtime.Journal().Alive(ctx, t.Owner)
		b.Live = err != nil || alive
		if !b.Live {
			b.State = "open, its process ended"
		}
	}
	calls := t.Calls[min(skip, len(t.Calls)):]
	for i, call := range calls {
		if i == listedCalls {
			b.More, b.Skip = len(calls)-i, skip+i
			break
		}
		b.Calls = append(b.Calls, c.lineOf(call))
	}
	waiting, waits := t.WaitingCommit().Get()
	b.Waits = waits && waiting.Answered == nil
	b.CanRevert = canRevert(t)
	return b
}

// canRevert reports whether a transaction left something that a revert takes
// back.
func canRevert(t *revert.Txn) bool {
	return t.Reverts+t.Redoes == "" && (len(t.EffectiveCalls()) > 0 || len(t.HeldCalls()) > 0)
}

// grouped joins neighbours of the same prompt.
func grouped(txns []*revert.Txn, boxes []txnBox) (all []group) {
	for i, t := range txns {
		if t.Prompt == nil {
			all = append(all, group{Txns: []txnBox{boxes[i]}})
			continue
		}
		if n := len(all); n > 0 && all[n-1].Prompt != nil && all[n-1].Prompt.ID == t.Prompt.ID && all[n-1].Prompt.Client == t.Prompt.Client {
			all[n-1].Txns = append(all[n-1].Txns, boxes[i])
			continue
		}
		text := t.Prompt.Text
		switch {
		case t.Prompt.Erased:
			text = "(erased)"
		case strings.TrimSpace(text) == "":
			text = "(the words are unknown)"
		}
		all = append(all, group{&promptLine{t.Prompt.ID, t.Prompt.Client, text}, []txnBox{boxes[i]}})
	}
	return all
}

// principal returns the ID of the principal of a session, "" if no record has
// it.
func (c *Console) principal(ctx context.Context, session string) string {
	body, err := callview.SessionRecord(ctx, c.Runtime.Journal(), session)
	if err != nil || body == nil {
		return ""
	}
	var p perm.Principal
	if json.Unmarshal(body.Principal, &p) != nil {
		return ""
	}
	return p.ID
}

func when(t time.Time) string  { return t.Local().Format("2006-01-02 15:04:05") }
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// statuses are the outcomes that a filter can name.
func statuses() []string {
	all := []string{string(revert.PhaseDropped), "in_flight"}
	for _, s := range []tool.Status{
		tool.StatusDone, tool.StatusHeld, tool.StatusPending, tool.StatusInvalid, tool.StatusDenied, tool.StatusFailed, tool.StatusVerifyFailed, tool.StatusCancelled, tool.StatusTimeout, tool.StatusUnknown,
	} {
		all = append(all, string(s))
	}
	slices.Sort(all)
	return all
}
