package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// callLedger counts the calls of each principal, or of one transaction, over all
// sessions and processes. It is a fold of the journal: each look reads the
// records since the last one. The position of a call's start record decides
// what a budget allows. If two processes begin a call at once, the later record
// sees the earlier one.
type callLedger struct {
	rt  *Runtime
	txn string // empty: all transactions, by principal

	mu       sync.Mutex // never held across a wait
	pos      int64
	owners   map[string]string             // whom a session counts for, by session
	counters map[string]*sessionCounters   // by owner
	calls    map[string]string             // owners of the calls that have not ended
	erased   map[string]bool               // erased calls whose other records were not read
	awaited  map[string]*perm.SessionFacts // counts before a call; nil: its start is not read yet
}

func newLedger(rt *Runtime, txn string) *callLedger {
	return &callLedger{
		rt: rt, txn: txn, owners: map[string]string{}, counters: map[string]*sessionCounters{}, calls: map[string]string{}, erased: map[string]bool{},
		awaited: map[string]*perm.SessionFacts{},
	}
}

// ownerOf returns whom a budget of a principal counts for: the first principal
// of the delegation chain, or the principal itself.
func ownerOf(p perm.Principal) string { return cmp.Or(slices.Concat(p.Chain, []string{p.ID})[0], p.ID) }

// spent returns the counts of an owner as the journal is now.
func (l *callLedger) spent(ctx context.Context, owner string) (perm.SessionFacts, error) {
	if err := l.read(ctx); err != nil {
		return perm.SessionFacts{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(owner).facts(owner), nil
}

// charge calls write, which puts the start of a call on the journal, and
// returns the counts of its owner before that record.
func (l *callLedger) charge(ctx context.Context, call string, write func() error) (perm.SessionFacts, error) {
	l.mu.Lock()
	l.awaited[call] = nil
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.awaited, call)
	}()
	if err := write(); err != nil {
		return perm.SessionFacts{}, err
	}
	if err := l.read(ctx); err != nil {
		return perm.SessionFacts{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.awaited[call]
	if before == nil {
		return perm.SessionFacts{}, fmt.Errorf("the journal does not show the start of call %s", call)
	}
	return *before, nil
}

func (l *callLedger) read(ctx context.Context) error {
	l.mu.Lock()
	after := l.pos
	l.mu.Unlock()
	q := journal.Query{Txn: l.txn, After: after, Kinds: []record.Kind{
		record.KindSession, record.KindHeld, record.KindDropped, record.KindStarted, record.KindDone, record.KindFailed, record.KindUnknown, record.KindErased,
	}}
	for e, err := range l.rt.journal.Entries(ctx, q) {
		if err == nil {
			err = l.note(e)
		}
		if err != nil {
			return fmt.Errorf("what was spent of a budget: %w", err)
		}
	}
	return nil
}

// note processes an entry, once.
func (l *callLedger) note(e record.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Pos <= l.pos {
		return nil
	}
	if e.Erased != "" {
		l.erased[e.Header.Call] = true
		l.pos = e.Pos
		return nil
	}
	rec, err := record.Unseal(e)
	if err == nil {
		err = l.record(rec)
	}
	if err == nil {
		l.pos = e.Pos
	}
	return err
}

// record adds one record to the counts. The caller holds the lock.
func (l *callLedger) record(rec record.Record) error {
	if opened, is := rec.Body.(*record.Session); is {
		var who perm.Principal
		if err := canon.Decode(opened.Principal, &who); err != nil {
			return err
		}
		l.owners[rec.Session] = ownerOf(who)
		return nil
	}
	switch b := rec.Body.(type) {
	case *record.Held:
		l.begins(rec).records(rec.At, lineOf(rec))
	case *record.Started:
		_, queued := l.calls[rec.Call]
		t := l.begins(rec)
		if !queued {
			t.reserve(rec.Session, rec.Call, b.Tool, b.Counts)
		}
		t.records(rec.At, lineOf(rec))
	case *record.Done:
		l.ends(rec, tool.StatusDone)
	case *record.Failed:
		l.ends(rec, tool.Status(b.Status))
	case *record.Unknown:
		l.ends(rec, tool.StatusUnknown)
	case *record.Dropped:
		l.ends(rec, "")
	case *record.Erased:
		if l.erased[rec.Call] { // otherwise its own records were counted
			delete(l.erased, rec.Call)
			l.of(l.owners[rec.Session]).records(rec.At, lineOf(rec))
		}
	}
	return nil
}

func lineOf(rec record.Record) []revert.CallRecord {
	return []revert.CallRecord{{Call: rec.Call, Body: rec.Body}}
}

// begins returns the counters for a call that begins. It keeps the counts
// before the call for a waiting charge. The caller holds the lock.
func (l *callLedger) begins(rec record.Record) *sessionCounters {
	owner := l.owners[rec.Session]
	t := l.of(owner)
	if _, again := l.calls[rec.Call]; again {
		return t
	}
	l.calls[rec.Call] = owner
	if before, wanted := l.awaited[rec.Call]; wanted && before == nil {
		facts := t.facts(owner)
		l.awaited[rec.Call] = &facts
	}
	return t
}

// ends counts a call by its status. The caller holds the lock.
func (l *callLedger) ends(rec record.Record, s tool.Status) {
	owner, begun := l.calls[rec.Call]
	if !begun {
		return
	}
	t := l.of(owner)
	t.records(rec.At, lineOf(rec))
	if s != "" {
		t.release(rec.Call, s)
	}
	if !t.counting(rec.Call) { // otherwise it waits in the queue again
		delete(l.calls, rec.Call)
	}
}

// of returns the counters of an owner. The caller holds the lock.
func (l *callLedger) of(owner string) *sessionCounters {
	t, ok := l.counters[owner]
	if !ok {
		t = newSessionCounters(l.rt.services.Host.Now, l.rt.tools.Load)
		l.counters[owner] = t
	}
	return t
}

// ledgerOf returns the ledger of a scope, and whom the session's calls count
// for in it.
func (c *txnFacts) ledgerOf(per string) (l *callLedger, owner string) {
	if per == perm.PerPrincipal {
		rt := c.session.rt
		rt.exchange.Lock()
		defer rt.exchange.Unlock()
		if rt.ledger == nil {
			rt.ledger = newLedger(rt, "")
		}
		return rt.ledger, ownerOf(c.session.principal)
	}
	for c.up != nil {
		c = c.up
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ledger == nil {
		c.ledger = newLedger(c.session.rt, c.txn)
	}
	return c.ledger, ""
}

// Spent returns the counts of the calls of a scope, as the journal is now.
func (c *txnFacts) Spent(ctx context.Context, per string) (perm.SessionFacts, error) {
	l, owner := c.ledgerOf(per)
	return l.spent(ctx, owner)
}

// Charge calls write, which puts the start of a call on the journal. It returns
// for each scope the counts of its calls before that record.
func (c *txnFacts) Charge(ctx context.Context, call string, per []string, write func() error) ([]perm.SessionFacts, error) {
	before := make([]perm.SessionFacts, len(per))
	for i, one := range per {
		inner := write
		write = func() (err error) {
			l, _ := c.ledgerOf(one)
			before[i], err = l.charge(ctx, call, inner)
			return err
		}
	}
	return before, write()
}
