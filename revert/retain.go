package revert

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Retainer prunes one journal repeatedly. It remembers its position, so a run
// reads only what is new since the last one. The first run reads the whole
// journal, because the position is not stored. A Retainer is not safe for
// concurrent use.
type Retainer struct {
	reverter *Reverter
	keep     Retention

	clock     clock
	cursor    int64                 // position of the newest beginning that was read
	states    int64                 // position of the newest state that was read
	cells     map[[2]string]stateAt // newest state up to there, by session and tool
	waiting   map[string]wait       // transactions that were past retention and had to stay, by ID
	runs      int
	refs      []effect.BlobRef // content of erased records that was not collected yet; nil: look for all
	hasErased bool             // records were erased since the last full collection
}

// wait says when a transaction is checked again: after as many runs as it has
// waited already.
type wait struct{ since, next int }

// Retain returns a Retainer for the journal of r.
func (r *Reverter) Retain(keep Retention) *Retainer {
	return &Retainer{reverter: r, keep: keep, clock: clock{step: keep.MaxAge / 1000}, cells: map[[2]string]stateAt{}, waiting: map[string]wait{}}
}

// batchCalls is how many calls one step erases, at most if each belongs to its
// own group: a client's call that waits for that step waits some milliseconds.
const batchCalls = 32

// Run deletes what is past retention; see Reverter.Prune. It does nothing while
// another process prunes the journal.
func (k *Retainer) Run(ctx context.Context) (out PruneReport, err error) {
	if j, ok := k.reverter.Journal.(interface {
		Sole(name string) (release func() error, ok bool, err error)
	}); ok && !k.keep.DryRun {
		release, ok, err := j.Sole("prune")
		if err != nil || !ok {
			return PruneReport{Kept: []StaleTxn{}, Waiting: "another process prunes this journal"}, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	return k.run(ctx)
}

func (k *Retainer) run(ctx context.Context) (PruneReport, error) {
	out := PruneReport{Kept: []StaleTxn{}}
	limit, err := k.past(ctx)
	if err != nil {
		return out, err
	}
	k.runs++
	b := &batch{k: k, out: &out, limit: limit}
	defer b.postpone()
	if err := b.checkWaiting(ctx); err != nil {
		return out, err
	}
	if err := b.checkNew(ctx); err != nil {
		return out, err
	}
	if err := b.write(ctx); err != nil || k.keep.DryRun {
		return out, err
	}
	if err := k.sweep(ctx, limit); err != nil {
		return out, err
	}
	return out, k.collect(ctx, &out)
}

// erased adds what a step erased.
func (k *Retainer) erased(e *eraseStep) {
	k.hasErased = true
	if k.refs != nil {
		k.refs = append(k.refs, e.refs...)
	}
}

// collect deletes the content that only erased records named. The first run
// deletes all content that no record names, and frees all space. So does the
// first run that erases nothing after others did.
func (k *Retainer) collect(ctx context.Context, out *PruneReport) error {
	switch {
	case out.Calls > 0:
	case k.hasErased || k.refs == nil:
		k.hasErased, k.refs = false, nil
	default:
		return nil
	}
	c, err := k.reverter.collect(ctx, k.refs)
	if err == nil {
		k.refs = []effect.BlobRef{}
	}
	out.Size, out.Blobs, out.Freed, out.Waiting = c.Size, c.Blobs, c.Freed, c.Waiting
	return err
}

// batch collects what one step erases.
type batch struct {
	k     *Retainer
	out   *PruneReport
	limit int64
	e     eraseStep
	parts []part
}

// part is a transaction with its linked transactions.
type part struct {
	first *Txn
	ids   []string
	group map[string]*Txn
}

// checkWaiting checks the transactions that had to stay.
func (b *batch) checkWaiting(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(b.k.waiting)) {
		if b.k.waiting[id].next > b.k.runs {
			continue
		}
		if err := b.check(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// checkNew checks the transactions that passed retention since the last run.
func (b *batch) checkNew(ctx context.Context) error {
	for e, err := range b.k.reverter.Journal.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, After: b.k.cursor}) {
		if err != nil {
			return err
		}
		if e.Pos > b.limit {
			return nil
		}
		if err := b.check(ctx, e.Header.Txn); err != nil {
			return err
		}
		b.k.cursor = e.Pos
	}
	return nil
}

// check adds a transaction to the batch, or notes that it must wait.
func (b *batch) check(ctx context.Context, id string) error {
	p, waits, err := b.k.reverter.prunable(ctx, id, b.limit, b.out)
	switch {
	case err != nil:
		return err
	case waits:
		b.wait(id)
		return nil
	case p.first == nil:
		delete(b.k.waiting, id)
		return nil
	}
	b.parts = append(b.parts, p)
	p.addTo(&b.e)
	if len(b.e.calls) < batchCalls {
		return nil
	}
	return b.write(ctx)
}

// write erases the batch in one step. If the journal refuses that, it erases
// each group in its own step: a transaction that another process works on
// waits.
func (b *batch) write(ctx context.Context) error {
	err := b.erase(ctx, &b.e, b.parts)
	if errors.Is(err, ErrBusy) {
		err = b.writeEach(ctx)
	}
	if err == nil {
		b.parts, b.e = nil, eraseStep{}
	}
	return err
}

func (b *batch) writeEach(ctx context.Context) error {
	for len(b.parts) > 0 {
		e := &eraseStep{}
		b.parts[0].addTo(e)
		err := b.erase(ctx, e, b.parts[:1])
		if err != nil && !errors.Is(err, ErrBusy) {
			return err
		}
		if err != nil {
			b.wait(b.parts[0].first.ID)
		}
		b.parts = b.parts[1:]
	}
	return nil
}

// postpone makes the next run check again what this run collected and did not
// erase.
func (b *batch) postpone() {
	for _, p := range b.parts {
		b.wait(p.first.ID)
	}
}

// wait makes a transaction wait for as many runs as it waited already.
func (b *batch) wait(id string) {
	w := b.k.waiting[id]
	if w.since == 0 {
		w.since = b.k.runs
	}
	w.next = b.k.runs + max(1, b.k.runs-w.since)
	b.k.waiting[id] = w
}

func (b *batch) erase(ctx context.Context, e *eraseStep, parts []part) error {
	if len(parts) == 0 {
		return nil
	}
	e.cause = eraseRetention
	var subjects []string
	group := map[string]*Txn{}
	for _, p := range parts {
		subjects = append(subjects, p.ids...)
		maps.Copy(group, p.group)
	}
	if !b.k.keep.DryRun {
		if err := b.k.reverter.writeErased(ctx, e, parts[0].first.Session, subjects, group); err != nil {
			return err
		}
		b.k.erased(e)
	}
	for _, p := range parts {
		delete(b.k.waiting, p.first.ID)
		for _, id := range p.ids {
			if p.group[id].hasRecords() {
				b.out.Txns++
			}
		}
	}
	b.out.Calls += len(e.calls) - e.words
	for _, ref := range e.refs {
		b.out.Content += ref.Size
	}
	return nil
}

func (p part) addTo(e *eraseStep) {
	e.cause, e.session = eraseRetention, p.first.Session
	for _, id := range p.ids {
		e.addPrompt(p.group[id])
		e.addCommits(p.group[id])
		for _, c := range p.group[id].Calls {
			if c.hasRevertRecords() {
				e.addCall(p.group[id], c)
			}
		}
	}
}

// clock is journal time: marks of positions, oldest first, with the elapsed
// time at each.
type clock struct {
	step  time.Duration // minimum distance of marks, except for the newest
	seen  int64         // position of the newest counted entry
	at    time.Time     // time of that entry
	gone  time.Duration
	marks []mark
}

type mark struct {
	pos  int64
	gone time.Duration
}

// tick counts the next entry.
func (c *clock) tick(e record.Header, pos int64) {
	if !c.at.IsZero() {
		c.gone += min(max(e.At.Sub(c.at), 0), 24*time.Hour)
	}
	c.at, c.seen = e.At, pos
	n := len(c.marks)
	if n >= 2 && c.gone-c.marks[n-2].gone < c.step {
		c.marks = c.marks[:n-1]
	}
	c.marks = append(c.marks, mark{pos, c.gone})
}

// past returns the newest position that is so old, or 0 if there is none. It
// drops the marks before it.
func (c *clock) past(keep time.Duration) int64 {
	n := 0
	for n < len(c.marks) && c.gone-c.marks[n].gone >= keep {
		n++
	}
	if n == 0 {
		return 0
	}
	c.marks = slices.Delete(c.marks, 0, n-1)
	return c.marks[0].pos
}

// past returns the position of the newest entry that is past retention. Only
// beginnings and ends of transactions advance the clock: reading fewer entries
// makes nothing older.
func (k *Retainer) past(ctx context.Context) (int64, error) {
	newest := int64(math.MaxInt64)
	if k.keep.KeepLast > 0 {
		newest = 0
		n := 0
		for e, err := range k.reverter.Journal.Entries(ctx, journal.Query{Kinds: ends, Newest: true, Limit: k.keep.KeepLast}) {
			if err != nil {
				return 0, err
			}
			if n++; n == k.keep.KeepLast {
				newest = e.Pos - 1
			}
		}
	}
	for e, err := range k.reverter.Journal.Entries(ctx, journal.Query{Kinds: append([]record.Kind{record.KindBegun}, ends...), After: k.clock.seen}) {
		if err != nil {
			return 0, err
		}
		k.clock.tick(e.Header, e.Pos)
	}
	return min(newest, k.clock.past(k.keep.MaxAge)), nil
}

var ends = []record.Kind{record.KindCommitted, record.KindAborted}
