package revert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// A revert of some calls of a committed transaction does not need its other
// calls. It reads a part of the transaction, so that its cost follows those
// calls and the earlier reverts, and not the size of the transaction:
//
//   - the records of the named calls, with all attempts to revert them;
//   - the records of every call that changed the same, an enclosing or an
//     enclosed resource later, of the calls on those in turn, and so on: exactly
//     the calls that can depend on a named one;
//   - the first record, the last one and all after it, with the links;
//   - the records of the calls that a link reverted incompletely.
//
// The fold is the one of a whole read, over fewer records: no record of a call
// changes another call, but a release at the commit. Whatever is not this
// simple is read as a whole: an open or aborted transaction, released calls,
// erased records, a redo, other folders.

// txnPart says which calls of a transaction were read. Calls has no others, and the
// savepoints, nested transactions and owner are not read.
type txnPart struct {
	named    []string
	reverted map[string]*Call // by ID: other calls that links reverted, with these attempts alone
}

// loadCalls reads a transaction for the revert of some of its calls, the whole
// one if there are none. It may return more calls, or all.
func (r *Reverter) loadCalls(ctx context.Context, id string, calls []string) (*Txn, error) {
	if id != "" && len(calls) > 0 {
		t, err := r.loadPart(ctx, id, calls)
		// A whole read tells more about damage.
		if !errors.Is(err, errReadAgain) && !errors.Is(err, record.ErrDamaged) {
			return t, err
		}
	}
	return r.Load(ctx, id)
}

// loadAll is loadCalls for a caller that needs every call.
func (r *Reverter) loadAll(ctx context.Context, id string, _ []string) (*Txn, error) {
	return r.Load(ctx, id)
}

func (r *Reverter) loadPart(ctx context.Context, id string, calls []string) (*Txn, error) {
	erasure, err := newestErasure(ctx, r.Journal)
	if err != nil {
		return nil, err
	}
	p := r.partReader(id, calls...)
	session, err := p.beginning(ctx)
	if err == nil {
		err = p.ending(ctx)
	}
	if err != nil {
		return nil, err
	}
	if named, err := r.named(ctx, session); err != nil || len(named) > 0 {
		return nil, cmp.Or(err, errReadAgain)
	}
	for _, call := range calls {
		if known, err := p.add(ctx, call); err != nil || !known {
			return nil, cmp.Or(err, errReadAgain)
		}
	}
	for {
		t, err := p.fold(ctx)
		if err != nil {
			return nil, err
		}
		if more, err := p.grow(ctx, t); err != nil {
			return nil, err
		} else if !more {
			t.seen.erasure = erasure
			return t, nil
		}
	}
}

// loadCall reads one call of an open transaction of this opening, with the
// attempts to revert it.
func (r *Reverter) loadCall(ctx context.Context, txn, call string) (*Call, error) {
	t := newTxn(txn, nil)
	p := r.partReader(txn)
	_, err := p.beginning(ctx)
	if err == nil {
		_, err = p.add(ctx, call)
	}
	if err == nil {
		err = p.reverts(ctx)
	}
	if err == nil {
		err = p.apply(t)
	}
	if errors.Is(err, errReadAgain) || errors.Is(err, record.ErrDamaged) {
		t, err = r.Load(ctx, txn)
	}
	if err != nil {
		return nil, err
	}
	if c, ok := t.Call(call); ok {
		return c, nil
	}
	return nil, fmt.Errorf("call %s: %w", call, journal.ErrNotFound)
}

func (r *Reverter) partReader(txn string, named ...string) *partReader {
	return &partReader{j: r.Journal, txn: txn, named: named, entries: map[int64]record.Entry{}, calls: map[string]bool{}}
}

// partReader reads a part of a transaction.
type partReader struct {
	j     journal.Journal
	txn   string
	named []string
	own   int64 // position of the last record of the own stream: the part is as of this record

	entries map[int64]record.Entry // of the own stream, by position
	calls   map[string]bool        // by ID: the call is read, or it is none
	first   int64                  // position of the first record of a call that was read
	later   []record.Entry         // changes and reverts of the own stream, from the position scanned
	scanned int64                  // 0: not read yet
}

// query returns a query for the own stream.
func (p *partReader) query(call string, after int64, kinds ...record.Kind) journal.Query {
	return journal.Query{Txn: p.txn, Call: call, After: after, Kinds: kinds}
}

// read returns entries of the own stream. None of them is erased.
func (p *partReader) read(ctx context.Context, q journal.Query) (list []record.Entry, err error) {
	for e, err := range p.j.Entries(ctx, q) {
		switch {
		case err != nil:
			return nil, err
		case p.own > 0 && e.Pos > p.own:
			continue // appended meanwhile: the next look finds it
		case e.Erased != "" || e.Header.Kind == record.KindErased:
			return nil, errReadAgain
		}
		list = append(list, e)
	}
	return list, nil
}

// beginning reads the first record.
func (p *partReader) beginning(ctx context.Context) (session string, err error) {
	q := p.query("", 0)
	q.Limit = 1
	begun, err := p.read(ctx, q)
	if err != nil || len(begun) == 0 {
		return "", cmp.Or(err, errReadAgain)
	}
	rec, err := record.Unseal(begun[0])
	if err != nil {
		return "", err
	}
	if b, ok := rec.Body.(*record.Begun); !ok || b.Reverts+b.Redoes != "" {
		return "", errReadAgain
	}
	p.keep(begun[0])
	return rec.Session, nil
}

// ending reads the record of the commit, and the links after it.
func (p *partReader) ending(ctx context.Context) error {
	q := p.query("", 0, record.KindCommitted, record.KindAborted)
	q.Newest, q.Limit = true, 1
	end, err := p.read(ctx, q)
	if err != nil || len(end) == 0 || end[0].Header.Kind != record.KindCommitted {
		return cmp.Or(err, errReadAgain)
	}
	after, err := p.read(ctx, p.query("", end[0].Pos))
	if err != nil {
		return err
	}
	p.own = end[0].Pos
	p.keep(end[0])
	for _, e := range after {
		p.own = e.Pos
		if e.Header.Kind == record.KindRevertedBy {
			p.keep(e)
		} // the others are of calls
	}
	return nil
}

func (p *partReader) keep(list ...record.Entry) {
	for _, e := range list {
		p.entries[e.Pos] = e
	}
}

// add reads the records of a call in the own stream. known is false if the ID is
// not that of a call, for example if it is that of a revert.
func (p *partReader) add(ctx context.Context, call string) (known bool, err error) {
	if p.calls[call] {
		return true, nil
	}
	p.calls[call] = true
	list, err := p.read(ctx, p.query(call, 0))
	if err != nil || call == "" || len(list) == 0 {
		return false, err
	}
	for i, e := range list {
		if e.Header.Kind == record.KindHeld { // its release depends on the other calls
			return false, errReadAgain
		}
		if e.Header.Kind == record.KindReverting && i == 0 {
			return false, nil
		}
	}
	p.keep(list...)
	if p.first == 0 || list[0].Pos < p.first {
		p.first = list[0].Pos
	}
	return true, nil
}

// fold returns the transaction as the records say that were read so far.
func (p *partReader) fold(ctx context.Context) (*Txn, error) {
	if err := p.reverts(ctx); err != nil {
		return nil, err
	}
	t := newTxn(p.txn, nil)
	t.part = &txnPart{named: p.named, reverted: map[string]*Call{}}
	if err := p.apply(t); err != nil {
		return nil, err
	}
	t.seen.own = p.own
	if err := t.readLinks(ctx, p.j); err != nil {
		return nil, err
	}
	if t.erased || t.seen.torn {
		return nil, errReadAgain
	}
	return t, nil
}

// reverts reads the attempts in the own stream to revert the calls, such as
// those of a savepoint.
func (p *partReader) reverts(ctx context.Context) error {
	if p.scanned == 0 || p.first < p.scanned {
		var err error
		if p.later, err = p.read(ctx, p.query("", p.first, record.KindChanged, record.KindReverting)); err != nil {
			return err
		}
		p.scanned = p.first
	}
	for _, e := range p.later {
		of, err := revertedIn(e)
		if err != nil {
			return err
		}
		if _, read := p.entries[e.Pos]; read || !p.calls[of] {
			continue
		}
		list, err := p.read(ctx, p.query(e.Header.Call, 0))
		if err != nil {
			return err
		}
		p.keep(list...)
	}
	return nil
}

// revertedIn returns the call whose revert begins with an entry, or "".
func revertedIn(e record.Entry) (call string, err error) {
	if e.Header.Kind != record.KindReverting {
		return "", nil
	}
	rec, err := record.Unseal(e)
	if err != nil {
		return "", err
	}
	if b, ok := rec.Body.(*record.Reverting); ok {
		call = b.Of.Call
	}
	return call, nil
}

// grow reads the calls that t lacks, and reports whether there is one.
func (p *partReader) grow(ctx context.Context, t *Txn) (more bool, err error) {
	lacks := t.incomplete()
	left := slices.DeleteFunc(slices.Clone(t.Calls), func(c *Call) bool { return !c.HasEffects() })
	about, known := queryTexts(left)
	if !known {
		return false, errReadAgain
	}
	for _, e := range p.later {
		if e.Header.Kind != record.KindChanged || p.calls[e.Header.Call] || t.part.reverted[e.Header.Call] != nil {
			continue // read before; or reverted, so nothing depends on it
		}
		if slices.ContainsFunc(about, func(text string) bool { return bytes.Contains(e.Body, []byte(text)) }) {
			lacks = append(lacks, e.Header.Call)
		}
	}
	for _, call := range lacks {
		known, err := p.add(ctx, call)
		if err != nil {
			return false, err
		}
		more = more || known
	}
	return more, nil
}

// incomplete returns the calls that a link reverted, perhaps with a remainder,
// and that are not read.
func (t *Txn) incomplete() (calls []string) {
	for _, id := range slices.Sorted(maps.Keys(t.part.reverted)) {
		if !t.part.reverted[id].IsReverted() {
			calls = append(calls, id)
		}
	}
	return calls
}

// target returns the call that a revert works on.
func (t *Txn) target(call string) (*Call, bool) {
	c, ok := t.byID[call]
	if ok || t.part == nil {
		return c, ok
	}
	if c, ok = t.part.reverted[call]; !ok {
		c = &Call{Ref: record.CallRef{Txn: t.ID, Call: call}}
		t.part.reverted[call] = c
	}
	return c, true
}

// stateOf returns the state of a transaction. A part has the same state as the
// whole if another call is as it was left and can be reverted: how the calls
// that were reverted ended is part of the part.
func (r *Reverter) stateOf(ctx context.Context, t *Txn) (TxnState, error) {
	if t.part == nil || len(t.RevertedBy) == 0 {
		return t.State(), nil
	}
	other, err := t.otherEffect(ctx, r.Journal)
	if err != nil {
		return "", err
	}
	if other != nil {
		return t.state(append(t.EffectiveCalls(), other)), nil
	}
	if t, err = r.Load(ctx, t.ID); err != nil {
		return "", err
	}
	return t.State(), nil
}

// maxOthers is the number of calls that otherEffect reads at most.
const maxOthers = 8

// otherEffect returns a call outside of the part that has an effect, that
// nothing reverted, and that can be reverted. It looks at the newest calls with
// changes, and returns nil if it finds none there.
func (t *Txn) otherEffect(ctx context.Context, j journal.Journal) (c *Call, err error) {
	p := &partReader{j: j, txn: t.ID, own: t.seen.own, calls: map[string]bool{}}
	for limit := 2 * maxOthers; ; limit *= maxOthers { // more if those were reverted
		q := p.query("", 0, record.KindChanged)
		q.Newest, q.Limit = true, limit
		var list []record.Entry
		if list, err = p.read(ctx, q); err == nil {
			c, err = p.effectIn(ctx, t, list)
		}
		if errors.Is(err, errReadAgain) || errors.Is(err, record.ErrDamaged) {
			return nil, nil // a whole read tells
		}
		if c != nil || err != nil || len(list) < limit || len(p.calls) >= maxOthers {
			return c, err
		}
	}
}

// effectIn is otherEffect for the calls of some changes.
func (p *partReader) effectIn(ctx context.Context, t *Txn, list []record.Entry) (*Call, error) {
	for _, e := range list {
		id := e.Header.Call
		if t.byID[id] != nil || t.part.reverted[id] != nil || p.calls[id] || len(p.calls) >= maxOthers {
			continue
		}
		p.entries, p.first = map[int64]record.Entry{}, 0
		if known, err := p.add(ctx, id); err != nil {
			return nil, err
		} else if !known {
			continue
		}
		alone := newTxn(t.ID, nil)
		alone.Owner = t.Owner
		if err := p.apply(alone); err != nil {
			return nil, err
		}
		c := alone.byID[id]
		if c == nil || !c.HasEffects() || !revertible(c) {
			continue
		}
		if reverted, err := p.revertedHere(ctx, id); err != nil || !reverted {
			return c, err
		}
	}
	return nil, nil
}

// revertedHere reports whether the own stream has an attempt to revert a call.
func (p *partReader) revertedHere(ctx context.Context, call string) (bool, error) {
	list, err := p.read(ctx, p.query("", p.first, record.KindReverting))
	for _, e := range list {
		if of, err := revertedIn(e); err != nil || of == call {
			return true, err
		}
	}
	return false, err
}

// apply folds the records of the own stream that were read.
func (p *partReader) apply(t *Txn) error {
	for _, pos := range slices.Sorted(maps.Keys(p.entries)) {
		if err := t.applyEntry(p.entries[pos], t.apply); err != nil {
			return err
		}
	}
	return nil
}
