package journal

import (
	"context"
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/render"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// txnRecord is what the journal says of a transaction, as it is shown.
type txnRecord struct {
	Txn       string          `json:"txn"`
	State     revert.TxnState `json:"state"`
	OwnerGone bool            `json:"owner_gone"` // only of an open one: its process ended
	// Committing: only of an open one: its commit has begun.
	Committing bool              `json:"committing,omitempty"`
	Principal  string            `json:"principal"`
	Client     *perm.ClientFacts `json:"client,omitempty"` // who the session is shown to, where somebody said
	Session    string            `json:"session"`
	Began      time.Time         `json:"began"`
	Undoes     string            `json:"undoes,omitempty"`      // the transaction that this one takes back
	UndoesCall string            `json:"undoes_call,omitempty"` // with undoes: the only call that it takes back, of several
	Redoes     string            `json:"redoes,omitempty"`      // the transaction that this one brings back
	Only       string            `json:"only,omitempty"`        // with redoes: what this undo took back
	UndoneBy   []string          `json:"undone_by"`
	RedoneBy   []string          `json:"redone_by"`
	Elsewhere  []elsewhereRecord `json:"elsewhere,omitempty"` // what was done in copies of its folders
	Missing    []gap             `json:"missing,omitempty"`   // records that are missing behind this one, or inside of it
	Calls      []callLine        `json:"calls"`
}

// elsewhereRecord is an undo or a redo in folders that a person named in the place of the
// recorded ones. State and the calls of a transaction are those of the recorded folders.
type elsewhereRecord struct {
	Txn    string          `json:"txn"`
	Redoes bool            `json:"redoes"`
	State  revert.TxnState `json:"state"` // of the transaction that it worked on, in these folders
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

// callLine is a call in the list of its transaction.
type callLine struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Status string `json:"status"` // of the outcome, or in_flight
	// ExitCode and Signal are how the call's program ended; absent if the call ran none.
	ExitCode *int          `json:"exit_code,omitempty"`
	Signal   string        `json:"signal,omitempty"`
	Changes  []tool.Change `json:"changes"`
	Undone   string        `json:"undone,omitempty"` // all, some, none, or in_flight
	Queued   bool          `json:"queued,omitempty"` // the commit will release it
	Erased   *erasedRecord `json:"erased,omitempty"` // nothing else is left of it
	// Feedback is what people said of it, oldest first; of each the newest counts.
	Feedback []provenance.Feedback `json:"feedback,omitempty"`

	input json.RawMessage // nil if no record has it
}

// erasedRecord says who erased a call, or that its retention had ended.
type erasedRecord struct {
	Cause   string   `json:"cause"` // asked, retention
	By      string   `json:"by,omitempty"`
	Why     string   `json:"why,omitempty"`
	Left    bool     `json:"left"` // something of it is there that cannot be taken back any more
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
		Undoes: t.Undoes, Redoes: t.Redoes, Only: t.Only, UndoneBy: []string{}, RedoneBy: []string{}, Calls: []callLine{},
		Committing: t.End == "" && t.Committing,
	}
	for _, id := range t.UndoneBy {
		by, err := revert.Load(ctx, j, id)
		switch {
		case err != nil:
			return nil, r, err
		case by.Redoes != "":
			r.RedoneBy = append(r.RedoneBy, id)
		default:
			r.UndoneBy = append(r.UndoneBy, id)
		}
	}
	if r.Elsewhere, err = elsewhereOf(ctx, j, t); err != nil {
		return nil, r, err
	}
	if t.Undoes != "" {
		subject, err := revert.Load(ctx, j, t.Undoes)
		if err != nil {
			return nil, r, err
		}
		if of := workedOn(subject, id); len(of) == 1 && len(subject.Calls) > 1 {
			r.UndoesCall = of[0].Ref.Call
		}
	}
	if r.State == revert.TxnOpen {
		alive, err := j.Alive(ctx, t.Owner)
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
		Call: c.Ref.Call, Tool: c.Tool.Name, Status: render.Status(c), Changes: changesOf(c.Changes), Undone: c.TakenBack(),
		Queued: t.End == "" && c.IsHeld(), Erased: erasedOf(c), Feedback: c.Feedback,
		input: c.Input(),
	}
	if c.Done != nil {
		if e, is := render.ProgramOf(c.Done.Output); is {
			l.ExitCode, l.Signal = e.Code, e.Signal
		}
	}
	return l
}

func changesOf(changes []effect.Change) []tool.Change {
	out := []tool.Change{}
	for _, c := range changes {
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
