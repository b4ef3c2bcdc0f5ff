package revert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// RecoveredCall is the result of recovering one call that a dead process left
// in flight.
type RecoveredCall struct {
	Txn      string          `json:"txn"`
	Call     string          `json:"call"`
	Tool     string          `json:"tool"`
	Outcome  Phase           `json:"as"`               // done, failed, unknown
	Why      string          `json:"why"`              // how the outcome was determined
	Reversal bool            `json:"revert,omitempty"` // an interrupted revert or redo of the call is now complete
	Items    []effect.Result `json:"items,omitempty"`
}

// RecoveryReport is the result of recovering a journal.
type RecoveryReport struct {
	Settled []RecoveredCall `json:"settled"`
	// Finished lists the interrupted reverts and redos that are now closed:
	// recovery completed the calls that they had begun, and nothing else was
	// left to do.
	Finished []Finished `json:"finished,omitempty"`
	// Abandoned lists the abandoned transactions, oldest first. They stay open,
	// with their claims, until they are reverted.
	Abandoned []string `json:"owner_gone"`
	// Committing lists those of them whose commit had begun. Continuing the
	// commit releases their held calls, and reverting them drops these.
	Committing []string `json:"committing,omitempty"`
	// Failed lists the transactions that could not be recovered here, for
	// example because another program has the tool of a call. All others are
	// recovered.
	Failed []UnrecoveredTxn `json:"failed,omitempty"`
	// Elsewhere counts the abandoned transactions whose files belong to another
	// node, which recovers them.
	Elsewhere int `json:"elsewhere,omitempty"`
	// Alive counts unfinished transactions of living processes.
	Alive int `json:"alive"`
}

// Finished is a revert or a redo that recovery closed.
type Finished struct {
	Txn    string   `json:"txn"`
	Of     string   `json:"of"`               // the transaction that it worked on
	Redoes bool     `json:"redoes,omitempty"` // a redo; otherwise a revert
	State  TxnState `json:"state"`            // state of that transaction afterwards
}

// UnrecoveredTxn is a transaction that could not be recovered.
type UnrecoveredTxn struct {
	Txn string `json:"txn"`
	Why string `json:"why"`
}

// Recover determines the outcome of the calls that dead processes left in
// flight, and completes interrupted reverts and redos of calls. It closes a
// revert or redo transaction that then has nothing left to do. It begins no
// revert and no redo. It can be repeated after a crash at any point. It ignores
// transactions of living owners.
func (r *Reverter) Recover(ctx context.Context) (RecoveryReport, error) {
	rec := RecoveryReport{Settled: []RecoveredCall{}, Abandoned: []string{}}
	open, err := r.Journal.Unfinished(ctx)
	if err != nil {
		return rec, err
	}
	var failed error
	for _, o := range open {
		if err := context.Cause(ctx); err != nil {
			return rec, err
		}
		alive, err := r.alive(ctx, o)
		if err != nil {
			return rec, err
		}
		if alive {
			rec.Alive++
			continue
		}
		settled, committing, link, err := r.recoverTxn(ctx, o.Txn)
		if errors.Is(err, ErrOtherNode) {
			rec.Elsewhere++
			continue
		}
		var finished *Finished
		if err == nil && link {
			finished, err = r.closeLink(ctx, o.Txn)
		}
		if finished != nil {
			rec.Finished = append(rec.Finished, *finished)
		} else {
			rec.Abandoned = append(rec.Abandoned, o.Txn)
		}
		if committing {
			rec.Committing = append(rec.Committing, o.Txn)
		}
		rec.Settled = append(rec.Settled, settled...)
		if err != nil && !errors.Is(err, journal.ErrNotOwner) && !errors.Is(err, ErrBusy) {
			rec.Failed = append(rec.Failed, UnrecoveredTxn{Txn: o.Txn, Why: err.Error()})
			if errors.Is(err, ErrToolNotFound) || errors.Is(err, ErrOtherFolder) {
				continue
			}
			failed = errors.Join(failed, fmt.Errorf("recover transaction %s: %w", o.Txn, err))
		}
	}
	return rec, failed
}

// alive reports whether an owner seems to work on a transaction. A transaction
// that this reverter took over for recovery alone is still abandoned: an
// earlier recovery did not complete.
func (r *Reverter) alive(ctx context.Context, o journal.Ownership) (bool, error) {
	if took, given := r.ownershipOf(o.Txn); took && !given && o.Owner == r.Journal.Owner() {
		return false, nil
	}
	if o.Owner == r.Journal.Owner() {
		return true, nil
	}
	return journal.LooksAlive(ctx, r.Journal, o.Owner) // adopt asks again
}

// ownerAlive reports whether an owner is alive. This opening is alive, even if the
// journal reports it dead: its calls in flight are not abandoned.
func (r *Reverter) ownerAlive(ctx context.Context, owner string) (bool, error) {
	//mutant:check
	if owner == r.Journal.Owner() {
		return true, nil
	}
	return r.Journal.Alive(ctx, owner)
}

// recoverTxn settles the calls in flight of a transaction, or of those that it
// reverts or redoes (link). A transaction can have many calls, and most have
// none in flight: it is read once, and again only before something is written.
func (r *Reverter) recoverTxn(ctx context.Context, id string) (settled []RecoveredCall, committing, link bool, err error) {
	subject := id
	if o, err := LoadOpening(ctx, r.Journal, id); err == nil { // Load reports an error
		// This node does not own it for a moment: its own node could not
		// recover it meanwhile.
		if _, err := r.EnvironmentFor(ctx, o.Session); errors.Is(err, ErrOtherNode) {
			return nil, false, false, err
		}
		subject = cmp.Or(o.About, id)
	}
	leave, err := r.acquire(subject)
	if err != nil {
		return nil, false, false, err
	}
	defer leave()
	t, err := r.Load(ctx, id)
	if err != nil {
		return nil, false, false, err
	}
	link, committing = t.Reverts+t.Redoes != "", t.Committing && !t.Aborting
	if t.End != "" {
		return nil, committing, link, nil
	}
	waiting := []*Txn{t}
	if link {
		if waiting, err = r.subjects(ctx, t); err != nil {
			return nil, committing, link, err
		}
	}
	waiting = slices.DeleteFunc(waiting, func(t *Txn) bool { return len(t.InFlight()) == 0 })
	if len(waiting) == 0 {
		return nil, committing, link, nil
	}
	settled, err = r.settleAbandoned(ctx, t, waiting)
	return settled, committing, link, err
}

// subjects reads the transactions that a revert or a redo works on.
func (r *Reverter) subjects(ctx context.Context, link *Txn) (list []*Txn, err error) {
	for _, id := range link.subjects() {
		t, err := r.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// settleAbandoned makes this opening the owner of an abandoned transaction, and
// settles the calls in flight of the waiting ones.
func (r *Reverter) settleAbandoned(ctx context.Context, t *Txn, waiting []*Txn) (settled []RecoveredCall, err error) {
	if t.Reverts+t.Redoes == "" && len(t.Named) > 0 {
		return nil, fmt.Errorf("only the recorded folder of its session shows the outcome of its in-flight calls; a revert here ends them as unknown: %w", ErrOtherFolder)
	}
	if t, err = r.adopt(ctx, t); err != nil {
		return nil, err
	}
	// From here on no other process writes to it. An owner that was wrongly
	// reported dead may have until now.
	if err := r.reload(ctx, waiting); err != nil {
		return nil, err
	}
	for _, subject := range waiting {
		some, err := r.settle(ctx, r.recorder(t).In(t.ID), subject)
		settled = append(settled, some...)
		if err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// closeLink ends an abandoned revert or redo transaction that has nothing left
// to do, which releases its claims. It returns nil if there is none, or
// something is left.
func (r *Reverter) closeLink(ctx context.Context, id string) (*Finished, error) {
	t, err := r.Load(ctx, id)
	if err != nil || t.End != "" || t.Reverts+t.Redoes == "" {
		return nil, err
	}
	leave, err := r.acquire(t.subjects()[0])
	if err != nil {
		return nil, err
	}
	defer leave()
	if over, err := r.nothingLeft(ctx, t); err != nil || !over {
		return nil, err
	}
	if t, err = r.adopt(ctx, t); err != nil {
		return nil, err
	}
	//mutant:none without it the link is closed again by the next recovery
	if err := r.recorder(t).In(id).Write(ctx, Write{Records: []CallRecord{{Body: &record.Committed{}}}, End: true, Durable: true}); err != nil {
		return nil, err
	}
	about, err := r.Load(ctx, t.Reverts+t.Redoes)
	if err != nil {
		return nil, err
	}
	return &Finished{Txn: id, Of: about.ID, Redoes: t.Redoes != "", State: about.State()}, nil
}

// nothingLeft reports whether a revert or a redo completed all that it can have
// been asked for.
func (r *Reverter) nothingLeft(ctx context.Context, link *Txn) (bool, error) {
	for _, id := range link.subjects() {
		t, err := r.Load(ctx, id)
		if err != nil {
			return false, err
		}
		todo := t.EffectiveCalls()
		if link.Redoes != "" {
			todo = t.revertedCalls(link.Only)
		}
		if len(t.InFlight()) > 0 || t.checkHere(link.ID) != nil || slices.ContainsFunc(todo, func(c *Call) bool { return revertible(c) && !c.WorkedOn(link.ID) }) {
			return false, nil
		}
	}
	return true, nil
}

// subjects returns the transactions whose calls t works on: itself, or those
// that it reverts or redoes.
func (t *Txn) subjects() []string {
	if about := t.Reverts + t.Redoes; about != "" {
		return append([]string{about}, t.AlsoReverts...)
	}
	return []string{t.ID}
}

func (r *Reverter) settleCalls(ctx context.Context, rec Recorder, t *Txn) error {
	if len(t.InFlight()) == 0 {
		return nil
	}
	if _, err := r.settle(ctx, rec, t); err != nil {
		return err
	}
	fresh, err := r.latest(ctx, t)
	if err == nil && fresh != t {
		*t = *fresh
	}
	return err
}

func (r *Reverter) settle(ctx context.Context, rec Recorder, t *Txn) ([]RecoveredCall, error) {
	var out []RecoveredCall
	w, err := r.EnvironmentFor(ctx, t.Session)
	if err != nil {
		return nil, err
	}
	var waiting error
	for _, c := range t.InFlight() {
		if c.Phase == PhaseStarted && rec.Txn() != t.ID {
			continue // its transaction has ended, so nothing can be added to it
		}
		s, err := r.settleCall(ctx, w, rec, c, t)
		if errors.Is(err, ErrToolNotFound) {
			waiting = errors.Join(waiting, fmt.Errorf("call %s: %w", c.Ref.Call, err))
			continue
		}
		if err != nil {
			return out, fmt.Errorf("call %s: %w", c.Ref.Call, err)
		}
		out = append(out, s)
	}
	return out, waiting
}

// settleCall determines the outcome of one call, in this order:
//
//  1. It completes a revert that had begun.
//  2. It discovers changes that only the resources tell.
//  3. If no version changed, the call had no effect.
//  4. It runs the tool's own Verify.
//  5. It reverts what a confined call left half done.
//
// Otherwise the outcome is unknown, and the call is neither repeated nor
// reverted.
func (r *Reverter) settleCall(ctx context.Context, w Environment, rec Recorder, c *Call, t *Txn) (RecoveredCall, error) {
	s := RecoveredCall{Txn: c.Ref.Txn, Call: c.Ref.Call, Tool: c.Tool.Name}
	if err := w.waitIdle(ctx, c); err != nil {
		return s, err
	}
	if c.Redo != nil {
		beside, err := r.neighbors(ctx, t, []*Call{c})
		if err != nil {
			return s, err
		}
		m := revertMode{by: c.Redo.Reverting.By, upon: beside.obstaclesTo(c, nil), merges: merging{}.planned(c.Redo.Reverting.Steps)}
		results, _, err := r.redoCall(ctx, w, rec, c, t.limit, m)
		s.Reversal, s.Items, s.Outcome, s.Why = true, results, c.Phase, "a redo of it was interrupted; recover finished the redo"
		return s, err
	}
	if c.Reversal != nil && c.Reversal.Reverted == nil {
		m, err := r.modeFor(ctx, t, c)
		if err != nil {
			return s, err
		}
		return r.finishReversal(ctx, w, rec, c, s, m)
	}
	if s, over, err := r.discover(ctx, w, rec, c, s); over || err != nil {
		return s, err
	}
	took, known, err := w.tookEffect(ctx, c)
	if err != nil {
		return s, err
	}
	if known && took && c.Confined() {
		return r.found(ctx, w, rec, c, s, record.Verified{Presence: effect.PresenceApplied, Findings: []string{"its transaction committed"}})
	}
	untouched := known && !took
	if !untouched {
		if untouched, err = w.unchanged(ctx, c); err != nil {
			return s, err
		}
	}
	if untouched && c.Confined() && !c.doubt {
		return r.end(ctx, rec, c, s, &record.Failed{Status: "failed", Why: "its process died, and it has no effect left", Proof: "no_effect"})
	}
	if c.Class() == effect.Pure && len(c.Changes) == 0 {
		return r.end(ctx, rec, c, s, &record.Failed{Status: "failed", Why: "its process died; it has no effects", Proof: "pure"})
	}
	looked, why, err := w.probe(ctx, c)
	if err != nil {
		return s, err
	}
	finding := looked.Presence
	switch {
	case finding == effect.PresenceApplied:
		return r.found(ctx, w, rec, c, s, looked)
	case finding == effect.PresenceAbsent && untouched:
		return r.end(ctx, rec, c, s, &record.Failed{Status: "failed", Why: "its process died; its effect is not there", Proof: "probe"})
	case finding == effect.PresencePartial && !c.Confined():
		return r.found(ctx, w, rec, c, s, looked)
	case c.doubt: // the result of one attempt says nothing about the one before
		return r.end(ctx, rec, c, s, &record.Unknown{Status: "unknown", Why: "it was released before, and " + why})
	case c.Confined():
		return r.revertConfined(ctx, w, rec, c, s)
	default:
		return r.end(ctx, rec, c, s, &record.Unknown{Status: "unknown", Why: "its process died and " + why})
	}
}

// found ends a call whose effect, or a part of it, is present.
func (r *Reverter) found(ctx context.Context, w Environment, rec Recorder, c *Call, s RecoveredCall, looked record.Verified) (RecoveredCall, error) {
	s.Outcome, s.Why = PhaseDone, "its effect is "+string(looked.Presence)
	looked.Phase, looked.OK = "recovery", looked.Presence == effect.PresenceApplied
	if !looked.OK {
		looked.Why = "only a part of the effect is there"
	}
	return s, rec.Write(ctx, Write{Records: []CallRecord{
		{Call: c.Ref.Call, Body: &record.Done{Recovered: true, Output: []byte("null"), Posts: w.posts(ctx, c)}},
		{Call: c.Ref.Call, Body: &looked},
		//mutant:barrier
	}, Durable: true})
}

// posts returns the versions that only the lost responses to an interrupted
// call could have told. It takes the current versions, since the tool's Verify
// confirms that the call wrote them.
func (w Environment) posts(ctx context.Context, c *Call) (posts []record.Post) {
	for _, ch := range c.Changes {
		s, ok := w.scheme(ch.Scheme)
		if !ok || ch.Post.Known() {
			continue
		}
		if now, err := s.Settle(ctx, ch); err == nil && now.Known() {
			posts = append(posts, record.Post{N: ch.N, Post: now})
		}
	}
	return posts
}

func (r *Reverter) finishReversal(ctx context.Context, w Environment, rec Recorder, c *Call, s RecoveredCall, m revertMode) (RecoveredCall, error) {
	was := c.Reversal.Reverting // it keeps its requester: a revert that a person asked for can be redone
	m.cause, m.by, m.only, m.merges = was.Cause, was.By, c.Reversal.filterOf(), m.merges.planned(was.Steps)
	results, _, err := r.revertOneCall(ctx, w, rec, c, m)
	s.Reversal, s.Items, s.Outcome, s.Why = true, results, c.Phase, "a revert of it was interrupted; recover finished the revert"
	if err != nil || c.Phase != PhaseStarted {
		return s, err
	}
	return r.endConfined(ctx, rec, c, s, results)
}

// revertConfined reverts a confined call that died half-way: its changes are its only
// effects, and its result was never visible.
func (r *Reverter) revertConfined(ctx context.Context, w Environment, rec Recorder, c *Call, s RecoveredCall) (RecoveredCall, error) {
	results, _, err := r.revertOneCall(ctx, w, rec, c, revertMode{cause: "recovery"})
	if err != nil {
		return s, err
	}
	s.Items = results
	return r.endConfined(ctx, rec, c, s, results)
}

func (r *Reverter) endConfined(ctx context.Context, rec Recorder, c *Call, s RecoveredCall, results []effect.Result) (RecoveredCall, error) {
	//mutant:check
	if RevertSummary(results) != "all" {
		return r.end(ctx, rec, c, s, &record.Unknown{Status: "unknown", Why: "the process died during the call, and not all effects could be reverted"})
	}
	return r.end(ctx, rec, c, s, &record.Failed{Status: "failed", Why: "the process died during the call; its effects were reverted", Proof: "reverted"})
}

// unchanged settles each change, newest first, and reports whether every
// resource is then as it was before the call.
func (w Environment) unchanged(ctx context.Context, c *Call) (bool, error) {
	now, before := map[string]effect.Token{}, map[string]effect.Token{}
	for _, ch := range slices.Backward(c.Changes) {
		before[ch.Resource], now[ch.Resource] = ch.Pre, ""
		s, ok := w.scheme(ch.Scheme)
		if !ok {
			continue
		}
		var err error
		if now[ch.Resource], err = s.Settle(ctx, ch); err != nil {
			return false, err
		}
	}
	for resource, is := range now {
		//mutant:token
		if !is.Same(before[resource]) {
			return false, nil
		}
	}
	return true, nil
}

// probe runs the tool's Verify. If the tool is not available, an unconfined
// call stays as it is: the program that has the tool could not correct a record
// that is written now.
func (w Environment) probe(ctx context.Context, c *Call) (record.Verified, string, error) {
	if w.Prober == nil {
		return record.Verified{}, "nothing can tell whether its effect is there", nil
	}
	looked, err := w.Prober.Probe(ctx, *c)
	switch {
	case errors.Is(err, ErrToolNotFound) && !c.Confined():
		return record.Verified{}, "", fmt.Errorf("tool %s: %w; recover in the program that has it", c.Tool.Name, err)
	case err != nil:
		return record.Verified{}, "the check whether its effect is there failed: " + err.Error(), nil
	}
	return looked, "its Verify cannot tell whether its effect is there", nil
}

func (r *Reverter) end(ctx context.Context, rec Recorder, c *Call, s RecoveredCall, b record.Body) (RecoveredCall, error) {
	lines := []CallRecord{{Call: c.Ref.Call, Body: b}}
	switch e := b.(type) {
	case *record.Failed:
		s.Outcome, s.Why = PhaseFailed, e.Why
	case *record.Unknown:
		s.Outcome, s.Why = PhaseUnknown, e.Why
	}
	//mutant:barrier
	return s, rec.Write(ctx, Write{Records: lines, Durable: true})
}
