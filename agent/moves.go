package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// moves finds what other processes did in a session. Several processes can hold
// a session, but only one at a time has transactions of it open. So its counts,
// labels and earlier calls are exact in each process, which reads what others
// did when it begins a transaction.
//
// The order of the journal decides between two processes: each writes the
// beginning of its transaction, then reads the beginnings before it. If a living
// process has one of these open, it gives up its own.
//
// A call that only reads, and is a transaction of its own, is on the journal
// when it has ended. So two processes can make such calls at the same time, and
// each counts those of the other at its next transaction.
type moves struct {
	shared  bool            // other processes can use the journal
	reading chan struct{}   // holds an element while the journal is read; guards the fields up to dead
	pos     int64           // all beginnings up to this position are known
	seen    int64           // what othersWrote returned at the last look
	stale   bool            // the counts lack what others did
	dead    map[string]bool // unfinished transactions whose process is gone; their calls are counted

	busy atomic.Bool // the last look found a transaction of a living process

	mu     sync.Mutex     // never held across a wait
	nested map[string]int // transactions in this process, and how many nested ones with calls of the session began in them and were not read yet
}

func newMoves(j journal.Journal) *moves {
	return &moves{shared: isShared(j), seen: math.MinInt64, reading: make(chan struct{}, 1), dead: map[string]bool{}, nested: map[string]int{}}
}

// noteNested notes that this process is about to begin a nested transaction with calls
// of the session, or could not.
func (m *moves) noteNested(txn string, more int) {
	if !m.shared { // nothing reads them
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nested[txn] += more; m.nested[txn] == 0 {
		delete(m.nested, txn)
	}
}

// nestedHere reports whether this process wrote a beginning of nested calls.
func (m *moves) nestedHere(txn string) bool {
	m.mu.Lock()
	here := m.nested[txn] > 0
	m.mu.Unlock()
	if here {
		m.noteNested(txn, -1)
	}
	return here
}

// begin sets what is known after the session was read up to a position.
// unfinished are the transactions whose end was not read, with the positions of
// their beginnings.
func (m *moves) begin(ctx context.Context, rt *Runtime, unfinished map[string]int64, last int64) error {
	m.pos = last
	for txn, begun := range unfinished {
		ended, err := rt.any(ctx, journal.Query{Txn: txn, Kinds: endKinds()})
		if err != nil {
			return err
		}
		if ended { // of another session, with calls of this one
			continue
		}
		t, err := revert.Load(ctx, rt.journal, txn)
		if err != nil {
			return err
		}
		alive, err := rt.journal.Alive(ctx, t.Owner)
		if err != nil {
			return err
		}
		switch {
		case t.Owner == rt.journal.Owner():
		case alive: // it is looked at again
			m.pos = min(m.pos, begun-1)
		default:
			m.dead[txn] = true
		}
	}
	return nil
}

func endKinds() []record.Kind { return []record.Kind{record.KindCommitted, record.KindAborted} }

// catchUp reads what other processes did in the session before its transaction
// mine began here, or until now if mine is empty. It returns revert.ErrBusy if
// a living process has a transaction of the session open.
func (s *Session) catchUp(ctx context.Context, mine string) error {
	m := s.state.moves
	if !m.shared {
		return nil
	}
	select {
	case m.reading <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.reading }()
	err := s.readOthers(ctx, mine)
	busy := errors.Is(err, revert.ErrBusy)
	m.busy.Store(busy)
	if err != nil && !busy {
		err = fmt.Errorf("what other processes did in session %s: %w", s.id, err)
	}
	return err
}

// readOthers does the work of catchUp.
func (s *Session) readOthers(ctx context.Context, mine string) error {
	m := s.state.moves
	n, err := s.rt.othersWrote(ctx)
	if err != nil || n == m.seen && !m.stale && !m.dead[mine] {
		return err
	}
	others, pos, later, err := s.begunByOthers(ctx, mine)
	if err != nil {
		return err
	}
	if later { // it can go on when mine has ended, without another write
		n = math.MinInt64
	}
	for _, txn := range others {
		counts, err := s.countsIn(ctx, txn)
		if err != nil {
			return err
		}
		m.stale = m.stale || counts
	}
	m.stale = m.stale || m.dead[mine] // this process has taken it over, and settled its calls
	if m.stale {
		if m.stale, err = s.state.readAgain(ctx, s.rt, s.id); err != nil {
			return err
		}
	}
	m.pos, m.seen = max(m.pos, pos), n
	delete(m.dead, mine)
	return nil
}

// othersWrote returns a number that differs from each earlier one if another
// process may have written to the journal since.
func (rt *Runtime) othersWrote(ctx context.Context) (int64, error) {
	if j, ok := rt.journal.(interface {
		Others(ctx context.Context) (int64, error)
	}); ok {
		return j.Others(ctx)
	}
	return rt.looks.Add(1), nil // unknown
}

// begunByOthers returns the transactions that other processes began or took over
// since the last look, before mine. pos is the position up to which they are
// known. later reports whether others can have begun one after mine.
func (s *Session) begunByOthers(ctx context.Context, mine string) (txns []string, pos int64, later bool, err error) {
	m := s.state.moves
	for txn := range m.dead {
		taken, err := s.rt.any(ctx, journal.Query{Txn: txn, Kinds: []record.Kind{record.KindAdopted}, After: m.pos})
		if err != nil {
			return nil, 0, false, err
		}
		if taken && txn != mine {
			txns = append(txns, txn)
		}
	}
	passed := false
	q := journal.Query{Session: s.id, Kinds: []record.Kind{record.KindBegun, record.KindNested, record.KindAdopted}, After: m.pos}
	for e, err := range s.rt.journal.Entries(ctx, q) {
		if err != nil {
			return nil, 0, false, err
		}
		b, err := beginningIn(e)
		if err != nil {
			return nil, 0, false, err
		}
		here := b.owner == s.rt.journal.Owner()
		if passed { // the next look reads these again
			later = later || !here
			continue
		}
		pos, here = e.Pos, here || b.nested && m.nestedHere(b.txn)
		if passed = here && b.txn == mine; !here && !b.reverts {
			txns = append(txns, b.txn)
		}
	}
	return txns, pos, later, nil
}

// beginning is an entry that says that a process can now make calls of a session
// in a transaction.
type beginning struct {
	txn     string
	owner   string // of the journal; empty: the entry does not say it
	reverts bool   // the transaction makes no calls
	nested  bool
}

func beginningIn(e record.Entry) (b beginning, err error) {
	rec, err := record.Unseal(e)
	if err != nil {
		return b, err
	}
	b.txn = e.Header.Txn
	switch body := rec.Body.(type) {
	case *record.Begun:
		b.owner, b.reverts = body.Owner, body.Reverts+body.Redoes != ""
	case *record.Adopted:
		b.owner = body.To
	case *record.Nested:
		b.nested = true
	}
	return b, nil
}

// countsIn reports whether a transaction of another process has something that
// counts for the session.
func (s *Session) countsIn(ctx context.Context, txn string) (bool, error) {
	if err := s.checkNotRunning(ctx, txn); err != nil {
		return false, err
	}
	return s.rt.any(ctx, journal.Query{Session: s.id, Txn: txn, Kinds: countedKinds()})
}

// checkNotRunning returns revert.ErrBusy if another living process can make
// calls in a transaction.
func (s *Session) checkNotRunning(ctx context.Context, txn string) error {
	rt, m := s.rt, s.state.moves
	delete(m.dead, txn)
	ended, err := rt.any(ctx, journal.Query{Txn: txn, Kinds: endKinds()})
	if err != nil || ended {
		return err
	}
	t, err := revert.Load(ctx, rt.journal, txn)
	if err != nil {
		return err
	}
	alive, err := rt.journal.Alive(ctx, t.Owner)
	switch {
	case err != nil:
		return err
	case t.Owner == rt.journal.Owner() || t.Aborting || t.End != "" || t.Reverts+t.Redoes != "":
		return nil
	case alive:
		return fmt.Errorf("session %s has transaction %s open in another process: %w", s.id, txn, revert.ErrBusy)
	}
	m.dead[txn] = true
	return nil
}

// readAgain makes the state of a session what the journal says now. It does
// nothing while calls of the session run in this process: others can only have
// read meanwhile.
func (st *sessionState) readAgain(ctx context.Context, rt *Runtime, id string) (stale bool, err error) {
	n, idle := st.counters.idle()
	if !idle {
		return true, nil
	}
	fresh := newSessionCounters(rt.services.Host.Now, rt.tools.Load)
	if _, _, err := rt.recount(ctx, id, fresh); err != nil {
		return true, err
	}
	st.origins.others()
	return !st.counters.replace(fresh, n), nil
}

// any reports whether the journal has an entry that a query selects.
func (rt *Runtime) any(ctx context.Context, q journal.Query) (bool, error) {
	_, ok, err := rt.first(ctx, q)
	return ok, err
}
