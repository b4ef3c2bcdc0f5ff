package revert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// Phase is the progress of a call.
type Phase string

// The phases of a call.
const (
	PhaseInvalid Phase = "invalid"
	PhaseDenied  Phase = "denied"
	PhasePending Phase = "pending" // waits for approval
	PhaseHeld    Phase = "held"    // waits until its transaction commits
	PhaseDropped Phase = "dropped" // was held, and never ran
	PhaseStarted Phase = "started" // no end recorded: in flight, or its process died
	PhaseDone    Phase = "done"
	PhaseFailed  Phase = "failed"
	PhaseUnknown Phase = "unknown"
	PhaseErased  Phase = "erased" // only Call.Erased describes it
)

// Call is the state of one call, as the journal has it. Its JSON form has no
// Ref: remit show --json prints the IDs in front of it.
type Call struct {
	Ref       record.CallRef             `json:"-"`
	Session   string                     `json:"session"`
	Began     time.Time                  `json:"began"`
	Ended     time.Time                  `json:"ended,omitzero"` // zero while in flight
	Tool      record.ToolRef             `json:"tool"`
	Phase     Phase                      `json:"phase"`
	Started   *record.Started            `json:"started,omitempty"`  // nil unless the call reached it
	Changes   []effect.Change            `json:"changes"`            // in order, with every known version
	Approvals []record.Approved          `json:"approved,omitempty"` // approvals while it ran, oldest first
	Notes     map[string]json.RawMessage `json:"notes,omitempty"`
	Invalid   *record.Invalid            `json:"invalid,omitempty"`
	Denied    *record.Denied             `json:"denied,omitempty"`
	Asked     *record.Asked              `json:"asked,omitempty"`
	Answered  *record.Answered           `json:"answered,omitempty"` // the newest
	Held      *record.Held               `json:"held,omitempty"`     // set: the commit releases it, or has released it
	Dropped   *record.Dropped            `json:"dropped,omitempty"`  // it was held, and will not be released
	Done      *record.Done               `json:"done,omitempty"`
	Failed    *record.Failed             `json:"failed,omitempty"`
	Unknown   *record.Unknown            `json:"unknown,omitempty"`
	Decided   *record.Decided            `json:"decided,omitempty"` // a person's resolution of its unknown outcome
	Erased    *record.Erased             `json:"erased,omitempty"`  // set: the records of the call are gone, and the other fields are empty
	Verified  []record.Verified          `json:"verdicts"`
	Feedback  []provenance.Feedback      `json:"feedback,omitempty"` // oldest first
	Reversal  *Reversal                  `json:"revert"`             // the newest revert; nil: none, or it was redone
	Redo      *Reversal                  `json:"redo,omitempty"`     // a redo of Reversal that has no end

	at      []int64     // positions of Changes on the journal
	earlier []*Reversal // reverts before Reversal, oldest first
	tries   []*Reversal // all reverts and redos of the call with records, oldest first
	states  []stateRef  // states that it, or a revert of it, left of its tool
	outside bool        // the tool's own Revert succeeded, in any attempt
	doubt   bool        // it was released before, with an unknown outcome
}

// Reversal is one revert of a call.
type Reversal struct {
	Txn       string           `json:"txn"`  // the transaction that reverted it: the call's own, or a revert transaction
	Call      string           `json:"call"` // ID of the revert call
	Reverting record.Reverting `json:"reverting"`
	Reverted  *record.Reverted `json:"reverted,omitempty"` // nil: in flight, or its process died
	Verified  *record.Verified `json:"verified,omitempty"` // result of the tool's Verify after the revert, if it ran
	Changes   []effect.Change  `json:"changes,omitempty"`  // changes of the tool's own Revert through handles

	at    int64           // position of Reverting on the journal
	over  bool            // it has no end, but its transaction has
	away  bool            // it worked in other folders
	doubt map[string]bool // resources that a failed redo may have redone
}

// Input returns the recorded arguments of the call. It returns nil if no record
// has them, for example after the call was erased.
func (c *Call) Input() json.RawMessage {
	switch {
	case c.Erased != nil:
	case c.Started != nil:
		return c.Started.Input
	case c.Held != nil:
		return c.Held.Input
	case c.Denied != nil:
		return c.Denied.Input
	case c.Asked != nil:
		return c.Asked.Input
	}
	return nil
}

// Class returns the effect class that counts for the call.
func (c *Call) Class() effect.Class {
	if c.Erased != nil && c.Erased.Class != "" {
		return c.Erased.Class
	}
	switch {
	case c.Started != nil:
		return c.Started.Class.OrPivot()
	case c.Held != nil:
		return c.Held.Class.OrPivot()
	default:
		return effect.Pure
	}
}

// Confined reports whether the call could act only through handles or inside a
// sandbox, so that its changes are its only effects.
func (c *Call) Confined() bool {
	return c.Started != nil && (c.Started.Confinement == "handles" || c.Started.Confinement == "sandbox")
}

// Observed reports whether the call could act anywhere and only its roots were
// compared. Its changes there are known, and its other effects are not.
func (c *Call) Observed() bool {
	return c.Started != nil && c.Started.Covers() == effect.Observed
}

// Waits reports whether the call waits for an answer: it has not started, or
// its approval request came while it ran.
func (c *Call) Waits() bool {
	switch c.Phase {
	case PhasePending:
		return true
	case PhaseStarted:
		return c.Asked != nil && c.Asked.During && c.Answered == nil && !c.approved(c.Asked.Digest)
	case PhaseInvalid, PhaseDenied, PhaseHeld, PhaseDropped, PhaseDone, PhaseFailed, PhaseUnknown, PhaseErased:
	}
	return false
}

func (c *Call) approved(question string) bool {
	return slices.ContainsFunc(c.Approvals, func(a record.Approved) bool { return a.Digest == question })
}

// IsReverted reports whether the call was reverted and nothing of it is left.
func (c *Call) IsReverted() bool {
	return c.Reversal != nil && c.Reversal.Reverted != nil && c.Reversal.Reverted.Complete && len(c.Reversal.doubt) == 0
}

// HasEffects reports whether an effect of the call can still be present. A
// transaction with such a call never counts as reverted.
func (c *Call) HasEffects() bool {
	switch c.Phase {
	case PhaseInvalid, PhaseDenied, PhasePending, PhaseHeld, PhaseDropped:
		return false
	case PhaseFailed:
		return c.Reversal != nil && !c.IsReverted() && c.Failed.Proof != personProof
	case PhaseUnknown:
		return !c.IsReverted() // the versions tell the effect of a confined call
	case PhaseErased:
		return c.Erased.Left
	case PhaseStarted, PhaseDone:
	}
	if c.IsReverted() {
		return false
	}
	if len(c.Changes) > 0 {
		return true
	}
	return c.Observed() || c.Class() != effect.Pure && (!c.Confined() || c.Started.Reverts)
}

// Verdict returns the newest verdict on the call's effect, if there is one.
func (c *Call) Verdict() mo.Option[record.Verified] {
	if len(c.Verified) == 0 {
		return mo.None[record.Verified]()
	}
	return mo.Some(c.Verified[len(c.Verified)-1])
}

// TxnState is the state of a transaction.
type TxnState string

// The states of a transaction. There is no state that means "probably".
const (
	TxnOpen            TxnState = "open"
	TxnCommitted       TxnState = "committed"
	TxnReverted        TxnState = "reverted"
	TxnRevertedPartial TxnState = "reverted_partial"
)

// Txn is the state of one transaction, as the journal has it.
type Txn struct {
	ID          string
	Session     string
	Owner       string
	Began       time.Time
	Reverts     string   // set: a revert transaction
	AlsoReverts []string // with Reverts: further transactions with calls that it reverts
	Redoes      string   // set: a redo transaction
	Prompt      *Prompt  // the prompt that its calls follow; nil: none
	Only        string   // with Redoes: the revert transaction to redo, if it is not all of them
	Calls       []*Call
	Savepoints  []Savepoint
	Nested      []NestedTxn // in the order in which they began
	RevertedBy  []string    // links that worked in these folders, oldest first
	Elsewhere   []RemainsElsewhere
	Named       []record.Root // the folders that it is read for, if they differ from the recorded ones; for a link: its folders
	Committing  bool          // its commit has begun: it accepts no more calls, and releases the held ones
	Aborting    bool
	Denied      bool             // with Aborting: because its commit was denied
	Commits     []CommitDecision // decisions about its commit, oldest first
	End         record.Kind      // committed, aborted, or empty while open
	ended       int64            // position of the record of its end
	complete    bool             // from the abort record
	redone      bool             // the newest of RevertedBy redid all of it
	redoneAt    int64            // position of the end of the newest complete redo
	byRedo      bool             // the newest of RevertedBy is a redo
	halfway     bool             // it has no end, or is a redo that left something
	redoing     bool             // while the stream of a redo is read: complete so far
	limit       string           // if the newest of RevertedBy is a redo: the revert transaction that it is limited to

	links       []string // all links, also of other folders, oldest first
	byID        map[string]*Call
	reversals   map[string]*Reversal // by revert call ID, of this transaction's stream
	gone        map[string]int64     // by call ID, position of an erased body without an erased record yet
	erasedCalls map[string]bool      // by call ID: erased, as records say

	away   bool     // the stream that is read worked in other folders
	erased bool     // an erased body was read
	seen   seen     // how far its streams were read
	part   *txnPart // set: only some of its calls were read
}

// Savepoint is a savepoint before the call with index At.
type Savepoint struct {
	Name string
	At   int
}

// State returns the transaction's state. A transaction with a remaining effect
// is never shown as reverted. It is partly reverted only if a revert or a redo
// did not complete what was requested. If one call of two was reverted as
// requested, the transaction is committed, and the call says that it was
// reverted.
func (t *Txn) State() TxnState { return t.state(t.EffectiveCalls()) }

// state is State for given effective calls.
func (t *Txn) state(left []*Call) TxnState {
	switch {
	case t.End == "":
		return TxnOpen
	case t.redone, t.End == record.KindCommitted && len(t.RevertedBy) == 0:
		return TxnCommitted
	case t.End == record.KindAborted && t.complete && len(t.RevertedBy) == 0:
		return TxnReverted
	case len(left) == 0:
		return TxnReverted
	case t.halfway, t.End == record.KindAborted && t.redoneAt == 0, slices.ContainsFunc(left, t.revertRequested), !slices.ContainsFunc(left, revertible):
		return TxnRevertedPartial
	default:
		return TxnCommitted
	}
}

// revertRequested reports whether a person asked to revert the call since the transaction
// ended, or was redone as a whole.
func (t *Txn) revertRequested(c *Call) bool {
	since := t.redoneAt
	if t.End == record.KindCommitted {
		since = max(since, t.ended)
	}
	return c.Reversal != nil && c.Reversal.byPerson() && c.Reversal.at > since && !c.revertedAsAsked(since)
}

// revertible reports whether a revert of the call can be tried. For other calls
// no attempt is recorded.
func revertible(c *Call) bool { return c.Phase != PhaseErased && !c.unclear() }

// EffectiveCalls returns the calls that can have a remaining effect, in the
// order in which they are reverted: newest first, and dependent calls before
// the calls that they depend on.
func (t *Txn) EffectiveCalls() []*Call {
	var left []*Call
	for i := len(t.Calls) - 1; i >= 0; i-- {
		if t.Calls[i].HasEffects() {
			left = append(left, t.Calls[i])
		}
	}
	return revertOrder(left)
}

// InFlight returns the calls and reverts that have no end.
func (t *Txn) InFlight() []*Call {
	var open []*Call
	for _, c := range t.Calls {
		if c.Phase == PhaseStarted || c.Redo != nil || (c.Reversal != nil && c.Reversal.Reverted == nil && !c.Reversal.over) {
			open = append(open, c)
		}
	}
	return open
}

// Call returns the call with an ID.
func (t *Txn) Call(id string) (*Call, bool) {
	c, ok := t.byID[id]
	return c, ok
}

// apply folds one record of the transaction's own stream into t.
func (t *Txn) apply(e record.Entry, r record.Record) error {
	if begun, ok := r.Body.(*record.Begun); ok {
		if t.Owner != "" {
			return fmt.Errorf("transaction %s began twice", t.ID)
		}
		t.Session, t.Owner, t.Began, t.Reverts = r.Session, begun.Owner, r.At, begun.Reverts
		t.Redoes, t.AlsoReverts, t.Only = begun.Redoes, begun.Also, begun.Only
		if t.Reverts+t.Redoes != "" {
			t.Named = begun.Roots
		}
		if p := begun.Prompt; p != nil {
			t.Prompt = &Prompt{Client: p.Client, ID: p.ID}
		}
		return nil
	}
	if t.Owner == "" {
		return fmt.Errorf("%s before transaction %s began", r.Kind, t.ID)
	}
	switch b := r.Body.(type) {
	case *record.State:
		return t.applyState(r, b)
	case *record.Prompted:
		return t.applyPrompted(r, b)
	}
	if t.End != "" && r.Kind != record.KindRevertedBy && r.Kind != record.KindAnswered && r.Kind != record.KindDecided && r.Kind != record.KindErased && r.Kind != record.KindFeedback {
		return fmt.Errorf("%s after transaction %s ended", r.Kind, t.ID)
	}
	switch b := r.Body.(type) {
	case *record.Adopted:
		t.Owner = b.To
	case *record.Savepoint:
		t.Savepoints = append(t.Savepoints, Savepoint{Name: b.Name, At: len(t.Calls)})
		return t.checkCommitting(r)
	case *record.Nested:
		return cmp.Or(t.checkCommitting(r), t.nest(b))
	case *record.NestEnded:
		return t.endNest(b)
	case *record.Aborting:
		t.Aborting, t.Denied = true, b.Denied
	case *record.CommitDecided:
		return t.decideCommit(r, b)
	case *record.Committing:
		return cmp.Or(t.checkPermitted(r), t.beginCommit())
	case *record.Committed:
		t.End, t.ended = record.KindCommitted, e.Pos
		return cmp.Or(t.checkPermitted(r), t.checkNoneHeld())
	case *record.Aborted:
		t.End, t.ended, t.complete = record.KindAborted, e.Pos, b.Complete
		t.abandon(t.ID)
		return t.checkNoneHeld()
	case *record.RevertedBy:
		t.links = append(t.links, b.Txn)
	case *record.RevertedTo:
		t.dropSavepoints(b.Name)
		return t.checkCommitting(r)
	case *record.Reverting, *record.Reverted:
		return t.applyReversal(e, r)
	case *record.Erased:
		return t.applyErased(r, b)
	default:
		if t.answerCommit(r) {
			return nil
		}
		return t.applyCall(e, r)
	}
	return nil
}

// dropSavepoints removes the savepoints that were set after the named one.
func (t *Txn) dropSavepoints(name string) {
	for i := len(t.Savepoints) - 1; i >= 0; i-- {
		if t.Savepoints[i].Name == name {
			t.Savepoints = t.Savepoints[:i+1]
			return
		}
	}
}

// applyReversal folds the records with which a transaction, this one or another,
// reverts calls of this one.
func (t *Txn) applyReversal(e record.Entry, r record.Record) error {
	switch b := r.Body.(type) {
	case *record.State:
		return t.applyState(r, b)
	case *record.Begun:
		if t.away {
			return nil
		}
		t.redoing, t.limit = b.Redoes == t.ID || (b.Redoes != "" && slices.Contains(b.Also, t.ID)), b.Only
		t.redone = false // until it has ended: its process may have died half-way
		t.byRedo, t.halfway = t.redoing, true
	case *record.Committed:
		t.seen.linkEnded = true
		if t.away {
			return nil
		}
		t.abandon(r.Txn)
		t.halfway = t.byRedo && len(t.revertedCalls(t.limit)) > 0
		if t.redone = t.redoing && len(t.revertedCalls("")) == 0; t.redone {
			t.redoneAt = e.Pos
		}
	case *record.Reverting:
		if b.Of.Txn != t.ID {
			t.reversals[r.Call] = &Reversal{} // a call of the transaction that this one reverts
			return nil
		}
		c, ok := t.target(b.Of.Call)
		if !ok {
			return fmt.Errorf("reverting call %s, which the journal does not have", b.Of.Call)
		}
		u := &Reversal{Txn: r.Txn, Call: r.Call, Reverting: *b, at: e.Pos, away: t.away}
		c.tries = append(c.tries, u)
		if b.Cause == causeRedo && !t.away {
			c.Redo = u
		} else if !t.away {
			if c.Reversal != nil {
				c.earlier = append(c.earlier, c.Reversal)
			}
			c.Reversal = u
		}
		t.reversals[r.Call] = u
	case *record.Reverted:
		if b.Of.Txn != t.ID {
			return nil
		}
		u, ok := t.reversals[r.Call]
		if !ok {
			return fmt.Errorf("call %s reverted without reverting", b.Of.Call)
		}
		u.Reverted = b
		c, _ := t.target(b.Of.Call)
		switch {
		case t.away: // only the tool's changes outside the folders count everywhere
		case u.Reverting.Cause == causeRedo:
			t.redoing = t.redoing && b.Complete
			c.applyRedo(b, t.limit)
		default:
			c.endDoubt(b)
		}
		for _, res := range b.Results {
			c.outside = c.outside || (u.Reverting.Cause != causeRedo && res.Resource == c.toolResource() && res.Outcome.Clean())
		}
	case *record.Changed:
		if u, ok := t.reversals[r.Call]; ok {
			u.Changes = append(u.Changes, b.Change)
		}
	case *record.Verified:
		if u, ok := t.reversals[r.Call]; ok {
			u.Verified = b
		}
	}
	return nil
}
