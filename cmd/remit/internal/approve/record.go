package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/lineage"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// PendingRecord is the JSON form of a pending call.
type PendingRecord struct {
	Call      string            `json:"call"`
	Txn       string            `json:"txn"`
	Session   string            `json:"session"`
	Principal string            `json:"principal"`
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"` // without sensitive values
	Access    []record.Access   `json:"access"`
	Reasons   []callview.Reason `json:"reasons"`
	Remember  *perm.Remember    `json:"remember,omitempty"` // what the policy lets an approval cover beside the call
	Since     time.Time         `json:"since"`
	Expires   time.Time         `json:"expires"`
	State     string            `json:"state"`              // waits, approved, denied, expired, interrupted
	By        string            `json:"by,omitempty"`       // who answered
	Earlier   string            `json:"earlier,omitempty"`  // earlier approvals of the call, in words
	Process   string            `json:"asker,omitempty"`    // name and number of the process that asked
	OwnerGone bool              `json:"owner_gone"`         // that process has ended
	Diff      string            `json:"diff,omitempty"`     // change of the files as they are now
	Note      string            `json:"note,omitempty"`     // what diff lacks, and why
	Shown     string            `json:"shown,omitempty"`    // digest of diff and note, for remit approve --diff
	Question  string            `json:"question,omitempty"` // digest that an approval names, if a program's changes wait
	Approve   string            `json:"approve,omitempty"`  // command that approves the call

	client string
	node   string // the other node that continues the call; empty: this one
}

// recordOf returns the record of a pending call, with at most the given number
// of lines of its difference.
func recordOf(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, w callview.Pending, tools tool.Registry, most int) (PendingRecord, error) {
	who, err := state.PrincipalOf(ctx, j, w.Txn.Session)
	if err != nil {
		return PendingRecord{}, err
	}
	node, err := p.NodeOf(ctx, j, w.Txn.Session)
	if err != nil {
		return PendingRecord{}, err
	}
	c := w.Call
	r := PendingRecord{
		node: node,

		Call: c.Ref.Call, Txn: c.Ref.Txn, Session: c.Session, Principal: who.ID, Tool: c.Tool.Name, Input: callview.PendingInput(c, tools), Access: cli.Listed(c.Asked.Access),
		Earlier: c.Asked.Earlier(), Reasons: []callview.Reason{}, Since: c.Began, Expires: c.Asked.Expires, OwnerGone: !w.Alive, client: render.Client(who.Client),
	}
	var d perm.DecisionRecord
	if err := json.Unmarshal(c.Asked.Decision, &d); err != nil {
		return PendingRecord{}, fmt.Errorf("the decision of call %s: %w", r.Call, err)
	}
	r.Remember = d.Remember
	r.Reasons = cli.Listed(callview.DecisionOf(&d).Reasons)
	var asked lineage.AskingProcess
	if first := w.Call.Asked.Processes; len(first) > 0 && json.Unmarshal(first[0], &asked) == nil && len(asked.Processes) > 0 {
		r.Process = fmt.Sprintf("%s (process %d)", asked.Processes[0].Name, asked.Processes[0].PID)
	}
	what, err := differenceOf(ctx, p, j, w.Txn.Session, c, tools)
	if err != nil {
		return PendingRecord{}, err
	}
	if c.Asked.Purpose != "" {
		r.Question = c.Asked.Digest
	} else if what != (callview.Preview{}) {
		r.Shown = what.Digest()
	}
	what = what.Truncate(most)
	r.Diff, r.Note = what.Patch, what.Note
	r.state(p, w, a.Host.Now(), most == approval.ShownLines)
	return r, nil
}

// differenceOf returns what a call that waits would change: in the files as they
// are now, or what its request is about.
func differenceOf(ctx context.Context, p *state.Workspace, j journal.Journal, session string, c *revert.Call, tools tool.Registry) (callview.Preview, error) {
	if c.Asked.Purpose != "" {
		return callview.Preview{Patch: c.Asked.Preview}, nil
	}
	folders, err := p.RootFolders(ctx, j, session)
	if err != nil {
		return callview.Preview{}, err
	}
	return callview.PreviewCall(ctx, folders, tools, c.Tool.Name, c.Tool.Digest, c.Asked.Input), nil
}

// errChanged means that a call that waits asks for something else than the
// person saw, or would change something else.
var errChanged = errors.New("what was shown has changed")

// checkShown returns errChanged if a call would change something else now than a
// person saw. shown is the digest of that; empty: none was given.
func checkShown(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, c *revert.Call, session, shown string) error {
	if shown == "" || !c.Waits() || c.Asked == nil {
		return nil
	}
	tools, err := tool.NewRegistry(state.RecordedTools(a)...)
	if err != nil {
		return err
	}
	what, err := differenceOf(ctx, p, j, session, c, tools)
	if err == nil && what.Digest() != shown {
		err = errChanged
	}
	return err
}

// state adds how the request stands, and the command that approves it. whole
// says that the person sees the whole difference.
func (r *PendingRecord) state(p *state.Workspace, w callview.Pending, now time.Time, whole bool) {
	c := w.Call
	switch {
	case c.Phase == revert.PhaseStarted && !w.Alive: // the call asked while it ran
		r.State = "interrupted"
	case c.Answered != nil && c.Answered.Digest == c.Asked.Digest && c.Answered.Approved:
		r.State, r.By = "approved", c.Answered.By
	case c.Answered != nil && c.Answered.Digest == c.Asked.Digest:
		r.State, r.By = "denied", c.Answered.By
	case now.After(r.Expires):
		r.State = "expired"
	default:
		r.State, r.Approve = "waits", p.Hint("approve", r.Call)
		if c.Asked.Purpose != "" {
			r.Approve = p.Hint("approve", r.Call, "--request", r.Question)
		} else if whole && r.Shown != "" && len(p.Moved) == 0 { // remit approve looks in the recorded folders
			r.Approve = p.Hint("approve", r.Call, "--diff", r.Shown)
		}
	}
}
