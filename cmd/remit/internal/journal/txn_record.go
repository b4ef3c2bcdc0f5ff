package journal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// txnRecord is the JSON form of a transaction.
type txnRecord struct {
	Txn         string            `json:"txn"`
	State       revert.TxnState   `json:"state"`
	OwnerGone   bool              `json:"owner_gone"`           // of an open transaction: its owner process has ended
	Committing  bool              `json:"committing,omitempty"` // of an open transaction: its commit has begun
	Principal   string            `json:"principal"`
	Client      *perm.ClientFacts `json:"client,omitempty"` // client of the session, if its record names one
	Session     string            `json:"session"`
	Began       time.Time         `json:"began"`
	Prompt      *promptRecord     `json:"prompt,omitempty"`       // prompt that the calls follow
	Reverts     string            `json:"reverts,omitempty"`      // transaction that this one reverts
	RevertsCall string            `json:"reverts_call,omitempty"` // with reverts: the one call that it reverts, of several
	Redoes      string            `json:"redoes,omitempty"`       // transaction that this one redoes
	Only        string            `json:"only,omitempty"`         // with redoes: the revert that it redoes
	RevertedBy  []string          `json:"reverted_by"`
	RedoneBy    []string          `json:"redone_by"`
	Elsewhere   []elsewhereRecord `json:"elsewhere,omitempty"` // reverts and redos in copies of its folders
	Commit      *callview.Commit  `json:"commit,omitempty"`    // newest decision about its commit, unless the policy allowed it unasked
	Missing     []gap             `json:"missing,omitempty"`   // gaps in this transaction or after it
	All         int               `json:"call_count"`          // number of its calls
	Calls       []callLine        `json:"calls"`               // those that the flags select
}

// promptRecord is the JSON form of a prompt, with what its calls did.
type promptRecord struct {
	Client string `json:"client"`
	ID     string `json:"id"`
	Text   string `json:"text"`
	Erased bool   `json:"erased,omitempty"` // the text was erased
	// State is that of the transaction, or partly_reverted if some changes of a
	// committed one are reverted.
	State string   `json:"state"`
	Calls int      `json:"calls"`
	Files []string `json:"files"` // changed resources
}

func promptOf(t *revert.Txn) *promptRecord {
	p := t.Prompt
	if p == nil {
		return nil
	}
	r := &promptRecord{Client: p.Client, ID: p.ID, Text: p.Text, Erased: p.Erased, State: string(t.State()), Calls: len(t.Calls), Files: []string{}}
	seen := map[string]bool{}
	for _, c := range t.Calls {
		if s := c.RevertSummary(); t.State() == revert.TxnCommitted && (s == "all" || s == "some") || t.State() == revert.TxnRevertedPartial {
			r.State = "partly_reverted"
		}
		for _, ch := range c.Changes {
			if !seen[ch.Resource] {
				seen[ch.Resource] = true
				r.Files = append(r.Files, ch.Resource)
			}
		}
	}
	return r
}

// elsewhereRecord is a revert or a redo in folders that --root named instead of
// the recorded ones. State and calls of a transaction are those of the recorded
// folders.
type elsewhereRecord struct {
	Txn    string          `json:"txn"`
	Redoes bool            `json:"redoes"`
	State  revert.TxnState `json:"state"` // state of its subject in these folders
	Roots  []folderRecord  `json:"roots"`
}

type folderRecord struct {
	Root string `json:"root"`
	Path string `json:"path"`
}

func elsewhereOf(ctx context.Context, j journal.Journal, t *revert.Txn) (out []elsewhereRecord, err error) {
	for _, e := range t.Elsewhere {
		there, err := revert.LoadAt(ctx, j, t.ID, e.Roots)
		if err != nil {
			return nil, err
		}
		r := elsewhereRecord{Txn: e.Txn, Redoes: e.Redoes, State: there.State(), Roots: []folderRecord{}}
		for _, root := range e.Roots {
			r.Roots = append(r.Roots, folderRecord{root.Name, root.Path})
		}
		out = append(out, r)
	}
	return out, nil
}

// callLine is the JSON form of a call in the log.
type callLine struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Status string `json:"status"` // status of the outcome, or in_flight
	// ExitCode and Signal say how the call's program ended. They are absent
	// without a program.
	ExitCode *int          `json:"exit_code,omitempty"`
	Signal   string        `json:"signal,omitempty"`
	Changes  []tool.Change `json:"changes"`
	Reverted string        `json:"reverted,omitempty"` // all, some, none, or in_flight
	Queued   bool          `json:"queued,omitempty"`   // the commit releases the call
	Began    time.Time     `json:"began"`
	Ended    *time.Time    `json:"ended,omitempty"`  // absent for a call in flight
	Erased   *erasedRecord `json:"erased,omitempty"` // set: the records of the call are gone
	// Feedback lists the feedback, oldest first. The newest of each person
	// counts.
	Feedback []provenance.Feedback `json:"feedback,omitempty"`

	input json.RawMessage // nil if no record has it
}

// erasedRecord says who erased a call, or that retention did.
type erasedRecord struct {
	Cause   string   `json:"cause"` // asked, retention
	By      string   `json:"by,omitempty"`
	Why     string   `json:"why,omitempty"`
	Left    bool     `json:"left"` // an effect remains that cannot be reverted any more
	Touched []string `json:"touched,omitempty"`
}

func erasedOf(c *revert.Call) *erasedRecord {
	if c.Erased == nil {
		return nil
	}
	e := c.Erased
	return &erasedRecord{Cause: e.Cause, By: e.By, Why: e.Why, Left: e.Left, Touched: e.Touched}
}

func loadTxn(ctx context.Context, j journal.Journal, id string) (*revert.Txn, txnRecord, error) {
	t, err := revert.Load(ctx, j, id)
	if err != nil {
		return nil, txnRecord{}, err
	}
	r := txnRecord{
		Txn: t.ID, State: t.State(), Session: t.Session, Began: t.Began,
		Reverts: t.Reverts, Redoes: t.Redoes, Only: t.Only, RevertedBy: []string{}, RedoneBy: []string{}, Calls: []callLine{},
		Committing: t.End == "" && t.Committing, Prompt: promptOf(t),
	}
	for _, id := range t.RevertedBy {
		by, err := revert.Load(ctx, j, id)
		switch {
		case err != nil:
			return nil, r, err
		case by.Redoes != "":
			r.RedoneBy = append(r.RedoneBy, id)
		default:
			r.RevertedBy = append(r.RevertedBy, id)
		}
	}
	if r.Commit, err = callview.CommitOf(t); err != nil {
		return nil, r, err
	}
	if r.Elsewhere, err = elsewhereOf(ctx, j, t); err != nil {
		return nil, r, err
	}
	if t.Reverts != "" {
		subject, err := revert.Load(ctx, j, t.Reverts)
		if err != nil {
			return nil, r, err
		}
		if of := workedOn(subject, id); len(of) == 1 && len(subject.Calls) > 1 {
			r.RevertsCall = of[0].Ref.Call
		}
	}
	if r.State == revert.TxnOpen {
		alive, err := journal.LooksAlive(ctx, j, t.Owner)
		if err != nil {
			return nil, r, err
		}
		r.OwnerGone = !alive
	}
	who, err := state.PrincipalOf(ctx, j, t.Session)
	if err != nil {
		return nil, r, err
	}
	r.Principal, r.Client = who.ID, who.Client
	for _, c := range t.Calls {
		r.Calls = append(r.Calls, lineOf(t, c))
	}
	return t, r, nil
}

func lineOf(t *revert.Txn, c *revert.Call) callLine {
	l := callLine{
		Call: c.Ref.Call, Tool: c.Tool.Name, Status: callview.Status(c), Changes: changesOf(c.Changes), Reverted: c.RevertSummary(),
		Queued: t.End == "" && c.IsHeld(), Erased: erasedOf(c), Feedback: c.Feedback,
		Began: c.Began, input: c.Input(),
	}
	if !c.Ended.IsZero() {
		l.Ended = &c.Ended
	}
	if c.Done != nil {
		if e, is := callview.ProgramOf(c.Done.Output); is {
			l.ExitCode, l.Signal = e.Code, e.Signal
		}
	}
	return l
}

func changesOf(changes []effect.Change) []tool.Change {
	out := []tool.Change{}
	for _, c := range changes {
		if c.Post.Known() && c.Pre.Same(c.Post) {
			continue // unchanged in the end, or recorded anew
		}
		out = append(out, tool.Change{Resource: c.Resource, Kind: c.Kind, Before: tokenOf(c.Pre), After: tokenOf(c.Post)})
	}
	return out
}

func tokenOf(t effect.Token) *effect.Token {
	if !t.Known() || t == effect.Absent {
		return nil
	}
	return &t
}
