package revert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// A transaction can be reverted in several places: in the folders that its
// session's record names, and in copies of them that a person names. A revert
// in one place says nothing about another, so a transaction is always read for
// one place.

// ErrOtherFolder is returned if only the recorded folders of a session are valid, and
// a person named others.
var ErrOtherFolder = errors.New("another folder is named for this session")

// ErrOtherNode is returned if the files of a session belong to another node. Only
// that node recovers and reverts its calls. It is also ErrOtherFolder.
var ErrOtherNode = fmt.Errorf("the files belong to another node: %w", ErrOtherFolder)

// RemainsElsewhere is a revert or redo transaction that worked in other folders than
// those that its subject is read for.
type RemainsElsewhere struct {
	Txn    string
	Redoes bool
	Roots  []record.Root // folders that a person named
}

// ElsewhereError is returned for a redo or a repetition of a revert that worked
// in folders other than the current ones.
type ElsewhereError struct {
	Txn   string        // the revert transaction
	Roots []record.Root // its folders
}

// Error names the revert transaction and its folders.
func (e *ElsewhereError) Error() string {
	var in []string
	for _, r := range e.Roots {
		in = append(in, fmt.Sprintf("root %q at %s", r.Name, r.Path))
	}
	if in == nil {
		in = []string{"the recorded folders"}
	}
	return fmt.Sprintf("transaction %s worked in another place: %s", e.Txn, strings.Join(in, ", "))
}

// LoadAt is Load for folders that a person named in place of the recorded ones.
// It counts only the reverts and redos of the transaction that worked in these
// folders.
func LoadAt(ctx context.Context, j journal.Journal, id string, named []record.Root) (*Txn, error) {
	return loadWhole(ctx, j, id, named)
}

// Load reads a transaction for the current folders; see LoadAt.
func (r *Reverter) Load(ctx context.Context, id string) (*Txn, error) {
	t, err := Load(ctx, r.Journal, id)
	if err != nil {
		return t, err
	}
	named, err := r.named(ctx, t.Session)
	if err != nil || len(named) == 0 {
		return t, err
	}
	return LoadAt(ctx, r.Journal, id, named)
}

// named returns the folders of a session that a person named in place of the
// recorded ones.
func (r *Reverter) named(ctx context.Context, session string) ([]record.Root, error) {
	if r.Named == nil {
		return nil, nil
	}
	return r.Named(ctx, session)
}

// applyLink folds the stream of a transaction that reverted or redid this one.
func (t *Txn) applyLink(ctx context.Context, j journal.Journal, link string) error {
	t.away = false
	err := t.readLink(ctx, j, link)
	if !t.away {
		t.RevertedBy = append(t.RevertedBy, link)
	}
	return err
}

// readLink folds what was not read yet of the stream of the newest link.
func (t *Txn) readLink(ctx context.Context, j journal.Journal, link string) error {
	return t.read(ctx, j, journal.Query{Txn: link, After: t.seen.link}, &t.seen.link, func(e record.Entry, r record.Record) error {
		if b, ok := r.Body.(*record.Begun); ok {
			here, err := t.isHere(ctx, j, b.Roots)
			if err != nil {
				return err
			}
			if t.part != nil && (!here || b.Redoes != "") {
				return errReadAgain
			}
			if t.away = !here; t.away {
				t.Elsewhere = append(t.Elsewhere, RemainsElsewhere{Txn: link, Redoes: b.Redoes != "", Roots: b.Roots})
			}
		}
		return t.applyReversal(e, r)
	})
}

// isHere reports whether named folders, together with the recorded ones, are
// the folders that the transaction is read for.
func (t *Txn) isHere(ctx context.Context, j journal.Journal, named []record.Root) (bool, error) {
	if len(named) == 0 && len(t.Named) == 0 {
		return true, nil
	}
	recorded, err := rootsOf(ctx, j, t.Session)
	if err != nil {
		return false, err
	}
	for _, was := range recorded {
		if folderOf(was, named) != folderOf(was, t.Named) {
			return false, nil
		}
	}
	return true, nil
}

// folderOf returns the identity of a root's folder: the named one, or else the
// recorded one.
func folderOf(was record.Root, named []record.Root) string {
	for _, r := range named {
		if r.Name == was.Name {
			return r.Node + string(r.Identity)
		}
	}
	return was.Node + string(was.Identity)
}

// rootsOf returns the roots that a session's record names.
func rootsOf(ctx context.Context, j journal.Journal, session string) ([]record.Root, error) {
	var roots []record.Root
	for e, err := range j.Entries(ctx, journal.Query{Session: session, Kinds: []record.Kind{record.KindSession}, Limit: 1}) {
		var r record.Record
		if err == nil {
			r, err = record.Unseal(e)
		}
		if err != nil {
			return nil, err
		}
		if b, ok := r.Body.(*record.Session); ok {
			roots = b.Roots
		}
	}
	return roots, nil
}

// abandon ends what an attempt in other folders left unfinished. Those folders
// are not available, and the next attempt there finds the interrupted steps.
func (t *Txn) abandon(link string) {
	for _, c := range t.Calls {
		if c.Reversal != nil && c.Reversal.Txn == link && c.Reversal.Reverted == nil {
			c.Reversal.over = true
		}
		if c.Redo != nil && c.Redo.Txn == link {
			var doubt record.Reverted
			for _, s := range c.Redo.Reverting.Steps {
				if s.Plan.Applies() {
					doubt.Results = append(doubt.Results, effect.Result{Resource: s.Change.Resource, Outcome: effect.Failed})
				}
			}
			c.applyRedo(&doubt, t.limit)
		}
	}
}

// endElsewhere ends an abandoned transaction, so that it can be reverted in folders
// that a person named. It reverts nothing: only the recorded folders tell the
// outcome of its calls in flight.
func (r *Reverter) endElsewhere(ctx context.Context, t *Txn, how Options) (items []ResourceResult, err error) {
	if how.limited() {
		return nil, fmt.Errorf("transaction %s has not ended; in another folder only the whole transaction can be reverted: %w", t.ID, ErrNotEnded)
	}
	if t, err = r.adopt(ctx, t); err != nil {
		return nil, err
	}
	rec := r.recorder(t).In(t.ID)
	if items, err = r.drop(ctx, t, t.HeldCalls(), how.drop("abort")); err != nil {
		return items, err
	}
	//mutant:none the undo that follows begins with a durable record, which makes this one durable too
	w := Write{Durable: true, End: true}
	for _, c := range t.Calls {
		if c.Phase == PhaseStarted {
			w.Records = append(w.Records, CallRecord{Call: c.Ref.Call, Body: &record.Unknown{Status: "unknown", Why: "the process died, and its folder was not available"}})
		}
	}
	if !t.Aborting {
		w.Records = append(w.Records, CallRecord{Body: &record.Aborting{Why: "revert"}})
	}
	w.Records = append(w.Records, CallRecord{Body: &record.Aborted{}})
	return items, rec.Write(ctx, w)
}

// abandonInFlight applies, for a preview, what endAway does to calls in flight.
func (t *Txn) abandonInFlight() {
	for _, c := range t.Calls {
		if c.Phase == PhaseStarted {
			c.Phase = PhaseUnknown
		}
	}
}

// revertElsewhere reverts an open transaction in folders that a person named.
func (r *Reverter) revertElsewhere(ctx context.Context, t *Txn, how Options) (Report, error) {
	dropped, err := r.endElsewhere(ctx, t, how)
	rep := Report{Txn: t.ID, Items: dropped}
	if err == nil {
		t, err = r.latest(ctx, t)
	}
	if err != nil {
		return rep, err
	}
	rep, err = r.revertTxn(ctx, t, how)
	rep.Items = append(dropped, rep.Items...)
	return rep, err
}

// mayRemainElsewhere reports whether the transaction is read for folders that a person
// named, and effects of it may remain there.
func (t *Txn) mayRemainElsewhere() bool {
	return len(t.Named) > 0 && len(t.EffectiveCalls())+len(t.InFlight()) > 0
}

// checkHere returns an error if a revert of this transaction worked in other
// folders.
func (t *Txn) checkHere(undo string) error {
	i := slices.IndexFunc(t.Elsewhere, func(e RemainsElsewhere) bool { return e.Txn == undo })
	if i < 0 {
		return nil
	}
	return &ElsewhereError{Txn: undo, Roots: t.Elsewhere[i].Roots}
}
