package callview

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// PollInterval is the time between two looks at a journal that other processes
// write.
const PollInterval = 250 * time.Millisecond

// stepRecords limits the records of one step, and so its memory.
const stepRecords = 2000

// NewestPosition returns the position of the newest record, 0 if there is none.
func NewestPosition(ctx context.Context, j journal.Journal) (pos int64, err error) {
	for e, err := range j.Entries(ctx, journal.Query{Newest: true, Limit: 1}) {
		if e.Pos != 0 { // a damaged entry has its position
			return e.Pos, nil
		}
		return 0, err
	}
	return 0, nil
}

// Feed follows the calls of a journal. It keeps the calls in flight, and no
// others. It is not safe for concurrent use.
type Feed struct {
	journal journal.Journal
	line    func(*revert.Call) Line
	pos     int64
	running map[string]*RunningCall
	waits   map[string]bool // calls that wait, and transactions that do or have such a call
}

// EndedCall is a call that ended, or whose outcome changed.
type EndedCall struct {
	Line
	Call *revert.Call
}

// RunningCall is a call in flight.
type RunningCall struct {
	Line
	Txn   string
	known bool // Line is read
}

// Step is what happened since the previous step.
type Step struct {
	Any      bool        // the journal had new records
	Ended    []EndedCall // in the order of their ends
	Reverted []string    // transactions of which calls were reverted or redone
	Waiting  bool        // the calls or commits that wait can be others now
	More     bool        // the journal has more already
	Damage   error       // of a record that cannot be read; the others are in the step
}

// NewFeed returns a feed of what comes after the newest record. Line returns
// what is shown of a call, such as LineOf with its sensitive arguments.
func NewFeed(ctx context.Context, j journal.Journal, line func(*revert.Call) Line) (*Feed, error) {
	pos, err := NewestPosition(ctx, j)
	return &Feed{journal: j, line: line, pos: pos, running: map[string]*RunningCall{}, waits: map[string]bool{}}, err
}

func isEnd(k record.Kind) bool {
	switch k {
	case record.KindInvalid, record.KindDenied, record.KindHeld, record.KindDropped, record.KindDone, record.KindFailed, record.KindUnknown, record.KindDecided:
		return true
	default:
		return false
	}
}

// Last returns the calls that ended last before the feed began, newest last. It
// reads only these.
func (f *Feed) Last(ctx context.Context, most int) (s Step, err error) {
	kinds := slices.DeleteFunc(record.Kinds(), func(k record.Kind) bool { return !isEnd(k) })
	var ends []record.Header
	for e, err := range f.journal.Entries(ctx, journal.Query{Kinds: kinds, Newest: true, Before: f.pos + 1, Limit: most}) {
		switch {
		case err != nil && e.Pos == 0:
			return s, err
		case err != nil:
			s.Damage = err
		default:
			ends = append(ends, e.Header)
		}
	}
	slices.Reverse(ends)
	return s, f.addEnds(ctx, &s, ends)
}

// FindRunning adds the calls that run already.
func (f *Feed) FindRunning(ctx context.Context) error {
	return eachOpen(ctx, f.journal, func(t *revert.Txn, alive bool) {
		if !alive {
			return
		}
		for _, c := range t.InFlight() {
			if c.Phase == revert.PhaseStarted && !c.Waits() {
				f.running[c.Ref.Call] = &RunningCall{f.line(c), t.ID, true}
			}
		}
	})
}

// Next returns what was appended since the previous step.
func (f *Feed) Next(ctx context.Context) (s Step, err error) {
	var ends []record.Header
	var reverts []string
	n := 0
	for e, err := range f.journal.Entries(ctx, journal.Query{After: f.pos, Limit: stepRecords}) {
		if err != nil && e.Pos == 0 {
			return s, err
		}
		f.pos, n = e.Pos, n+1
		if err != nil {
			s.Damage = err
			continue
		}
		h := e.Header
		s.Waiting = s.Waiting || f.waits[h.Call] || f.waits[h.Txn] && h.Call == ""
		switch {
		case isEnd(h.Kind):
			ends = append(ends, h)
			delete(f.running, h.Call)
		case h.Kind == record.KindVerified:
			ends = append(ends, h)
		case h.Kind == record.KindReverted:
			reverts = append(reverts, h.Call)
		default:
			f.follow(&s, e)
		}
	}
	s.Any, s.More = n > 0, n == stepRecords
	if err := f.addEnds(ctx, &s, ends); err != nil {
		return s, err
	}
	if err := f.addReverts(ctx, &s, reverts); err != nil {
		return s, err
	}
	return s, f.readRunning(ctx)
}

// follow takes note of a record that ends no call.
func (f *Feed) follow(s *Step, e record.Entry) {
	switch h := e.Header; h.Kind {
	case record.KindStarted, record.KindApproved: // it runs, perhaps again after it waited
		f.running[h.Call] = &RunningCall{Txn: h.Txn}
	case record.KindAsked:
		delete(f.running, h.Call)
		s.Waiting = true
	case record.KindAnswered, record.KindAdopted:
		s.Waiting = true
	case record.KindCommitDecided:
		rec, err := record.Unseal(e)
		b, is := rec.Body.(*record.CommitDecided)
		s.Waiting = s.Waiting || err != nil || !is || b.Waits()
	default:
	}
}

// addEnds adds the calls that ended. A call that ended twice is in the step
// once, as it stands now.
func (f *Feed) addEnds(ctx context.Context, s *Step, ends []record.Header) error {
	newest := map[string]int{}
	for i, h := range ends {
		if _, ended := newest[h.Call]; !ended || h.Kind != record.KindVerified {
			newest[h.Call] = i
		}
	}
	for i, h := range ends {
		if newest[h.Call] != i {
			continue
		}
		c, err := revert.ReadCall(ctx, f.journal, h.Txn, h.Call)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.Damage = err
			continue
		}
		if l := f.line(c); h.Kind != record.KindVerified || l.Status == "verify_failed" {
			s.Ended = append(s.Ended, EndedCall{l, c})
		}
	}
	return nil
}

// addReverts adds the transactions of the calls that these reverts concern.
func (f *Feed) addReverts(ctx context.Context, s *Step, reverts []string) error {
	for _, id := range reverts {
		for e, err := range f.journal.Entries(ctx, journal.Query{Call: id, Kinds: []record.Kind{record.KindReverting}, Limit: 1}) {
			if err != nil && e.Pos == 0 {
				return err
			}
			if err != nil || e.Erased != "" {
				continue
			}
			rec, err := record.Unseal(e)
			if err != nil {
				s.Damage = err
				continue
			}
			if b, ok := rec.Body.(*record.Reverting); ok && !slices.Contains(s.Reverted, b.Of.Txn) {
				s.Reverted = append(s.Reverted, b.Of.Txn)
			}
		}
	}
	return nil
}

// readRunning reads the calls that began in this step and still run.
func (f *Feed) readRunning(ctx context.Context) error {
	for id, r := range f.running {
		if r.known {
			continue
		}
		c, err := revert.ReadCall(ctx, f.journal, r.Txn, id)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the step that ends it tells of the damage
			delete(f.running, id)
			continue
		}
		r.Line, r.known = f.line(c), true
	}
	return nil
}

// Waiting is what waits for a person.
type Waiting struct {
	Calls   []Pending
	Commits []PendingCommit
	Damage  error // of a transaction that cannot be read; the others are listed
}

// Waiting returns what waits for a person, oldest first.
func (f *Feed) Waiting(ctx context.Context) (w Waiting) {
	if w.Calls, w.Damage = FindPending(ctx, f.journal); w.Damage == nil { // otherwise the same damage
		w.Commits, w.Damage = FindPendingCommits(ctx, f.journal)
	}
	f.waits = map[string]bool{}
	for _, c := range w.Calls {
		f.waits[c.Call.Ref.Call], f.waits[c.Txn.ID] = true, true
	}
	for _, c := range w.Commits {
		f.waits[c.Txn.ID] = true
	}
	return w
}

// DropDead forgets the calls whose process has ended.
func (f *Feed) DropDead(ctx context.Context) error {
	if len(f.running) == 0 {
		return nil
	}
	open, err := f.journal.Unfinished(ctx)
	if err != nil {
		return err
	}
	lives := map[string]bool{}
	for _, o := range open {
		alive, err := f.journal.Alive(ctx, o.Owner)
		lives[o.Txn] = alive || err != nil
	}
	for id, r := range f.running {
		if !lives[r.Txn] {
			delete(f.running, id)
		}
	}
	return nil
}

// Running returns the calls in flight, oldest first.
func (f *Feed) Running() []RunningCall {
	all := make([]RunningCall, 0, len(f.running))
	for _, r := range f.running {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b RunningCall) int {
		if by := a.Began.Compare(b.Began); by != 0 {
			return by
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}
