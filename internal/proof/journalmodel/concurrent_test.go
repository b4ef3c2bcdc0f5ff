package journalmodel_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// outcome is what an append did, between two sizes of the journal.
type outcome struct {
	b             wBatch
	err           string
	before, after int64
}

// round is one concurrent run.
type round struct {
	t      *testing.T
	seed   uint64
	dir    string
	opens  []*sqlite.Journal
	owners []string

	mu  sync.Mutex
	all []outcome
}

// TestConcurrent lets openings append, read and collect at once. Then it
// replays the stored batches in their order: the model stores each one, and for
// each refusal there is a moment at which it refuses too.
func TestConcurrent(t *testing.T) {
	stored, refused := 0, 0
	eachSeed(t, 3, 200, func(t *testing.T, seed uint64) {
		c := &round{t: t, seed: seed, dir: filepath.Join(memoryDir(t), "j")}
		for range 2 + seed%2 {
			j, err := sqlite.Open(t.Context(), c.dir)
			require.NoError(t, err)
			c.opens, c.owners = append(c.opens, j), append(c.owners, j.Owner())
		}
		c.work()
		m, no := c.replay()
		c.compare(m)
		for _, j := range c.opens {
			require.NoError(t, j.Close())
		}
		d := &driver{t: t, m: m, st: &stats{}}
		d.fsck(c.dir)
		stored, refused = stored+len(c.all)-no, refused+no
	})
	t.Logf("%d batches stored, %d refused", stored, refused)
}

// work runs three writers and a reader in each opening.
func (c *round) work() {
	var all sync.WaitGroup
	for oi, j := range c.opens {
		for w := range 3 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(c.seed, uint64(oi*100+w)))
				d := &driver{t: c.t, r: r, m: newModel(), st: &stats{}, markN: (oi*10 + w) * 1000000}
				for i := range 40 {
					c.append(j, d, c.batch(j, d, i))
				}
			})
		}
		all.Go(func() {
			r := rand.New(rand.NewPCG(c.seed, uint64(oi+9000)))
			for range 60 {
				c.read(j, r)
			}
		})
	}
	all.Wait()
}

// batch returns a batch of a writer, which often competes with others.
func (c *round) batch(j *sqlite.Journal, d *driver, i int) (b wBatch) {
	r := d.r
	id := fmt.Sprintf("t%d", i/8*6+r.IntN(9))
	me := journal.Ownership{Txn: id, Owner: j.Owner()}
	switch r.IntN(8) {
	case 0:
		b.Take, b.Fence = journal.OwnerChange{To: me}, me
	case 1:
		b.Take, b.Fence = journal.OwnerChange{From: c.owners[r.IntN(len(c.owners))], To: me}, me
	case 2, 3, 4:
		b.Fence = me
	}
	for range min(len(b.Fence.Txn), 1) * r.IntN(3) {
		b.Claims = append(b.Claims, fmt.Sprintf("r%d", r.IntN(30)))
	}
	b.End = b.Fence.Txn != "" && r.IntN(6) == 0
	b.Durable = r.IntN(4) == 0
	if r.IntN(15) == 0 {
		b.Erase = []string{fmt.Sprintf("call%d", r.IntN(40))}
	}
	for range 1 + r.IntN(3) {
		e, names, marks := d.entry(id)
		b.Entries = append(b.Entries, c.reseal(e, fmt.Sprintf("call%d", r.IntN(40))))
		b.Names, b.Marks = append(b.Names, names), append(b.Marks, marks)
	}
	return b
}

// reseal gives an entry another call.
func (c *round) reseal(e record.Entry, call string) record.Entry {
	r, err := record.Unseal(e)
	if err != nil {
		return e
	}
	r.Call = call
	e, err = record.Seal(r, slices.Clone(e.Salt))
	c.ok(err)
	return e
}

// ok reports an error. It does not end the test, because it runs in other
// goroutines.
func (c *round) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

// append appends a batch, and reads it back.
func (c *round) append(j *sqlite.Journal, d *driver, b wBatch) {
	ctx := c.t.Context()
	before, err := j.Head(ctx)
	c.ok(err)
	stored := j.Append(ctx, b.batch())
	after, err := j.Head(ctx)
	c.ok(err)
	o := outcome{b: b, err: kindOf(stored), before: before.Size, after: after.Size}
	if o.err == "other" {
		c.t.Errorf("append: %v", stored)
	}
	if stored == nil {
		seen := 0
		for e, err := range j.Entries(ctx, journal.Query{Txn: b.Entries[0].Header.Txn, After: before.Size}) {
			c.ok(err)
			if e.Leaf == b.Entries[0].Leaf {
				seen++
			}
		}
		if seen != 1 {
			c.t.Errorf("an entry of the writer itself is read %d times after its append", seen)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, o)
}

// read makes one query, whose positions must rise, and sometimes collects.
func (c *round) read(j *sqlite.Journal, r *rand.Rand) {
	ctx := c.t.Context()
	q := journal.Query{After: int64(r.IntN(50)), Newest: r.IntN(2) == 0}
	all := false
	switch r.IntN(4) {
	case 0:
		q.Txn = fmt.Sprintf("t%d", r.IntN(50))
	case 1:
		q.Call = fmt.Sprintf("call%d", r.IntN(40))
	case 2:
		q.Kinds = []record.Kind{record.KindDone, record.KindRevertNote}
	default:
		all = true
	}
	var got []int64
	for e, err := range j.Entries(ctx, q) {
		c.ok(err)
		if got = append(got, e.Pos); len(got)%50 == 0 {
			runtime.Gosched()
		}
	}
	if q.Newest {
		slices.Reverse(got)
	}
	last := q.After
	for _, p := range got {
		if p <= last || all && p != last+1 {
			c.t.Errorf("query %+v: position %d after %d", q, p, last)
			return
		}
		last = p
	}
	open, err := j.Unfinished(ctx)
	c.ok(err)
	seen := map[string]bool{}
	for _, o := range open {
		if seen[o.Txn] {
			c.t.Errorf("unfinished twice: %s", o.Txn)
		}
		seen[o.Txn] = true
	}
	if r.IntN(30) == 0 {
		_, err := j.CollectGarbage(ctx, nil)
		c.ok(err)
	}
}

// replay gives the stored batches to a model, in their order, and returns it
// with the number of refusals.
func (c *round) replay() (m *model, no int) {
	byLeaf := map[string]outcome{}
	var refused []outcome
	for _, o := range c.all {
		if o.err == "" {
			byLeaf[o.b.Entries[0].Leaf] = o
		} else {
			refused = append(refused, o)
		}
	}
	no = len(refused)
	m = newModel()
	justify := func() {
		size := int64(len(m.entries))
		refused = slices.DeleteFunc(refused, func(o outcome) bool {
			return o.before <= size && size <= o.after && slices.Contains(m.expect(o.b), o.err)
		})
	}
	justify()
	stored := c.entries(c.opens[0])
	batches := 0
	for ; len(m.entries) < len(stored); batches++ {
		o, ok := byLeaf[stored[len(m.entries)].Leaf]
		require.True(c.t, ok, "entry %d begins no acknowledged batch", len(m.entries)+1)
		require.Empty(c.t, m.expect(o.b), "the batch at %d was stored: %v %v %v", len(m.entries)+1, o.b.Take, o.b.Fence, o.b.Claims)
		m.apply(o.b)
		justify()
	}
	require.Equal(c.t, len(c.all)-no, batches, "acknowledged batches that are stored")
	for _, o := range refused {
		require.Fail(c.t, "refused without a cause", "%s: %v %v %v between %d and %d", o.err, o.b.Take, o.b.Fence, o.b.Claims, o.before, o.after)
	}
	return m, no
}

func (c *round) entries(j *sqlite.Journal) (out []record.Entry) {
	for e, err := range j.Entries(c.t.Context(), journal.Query{}) {
		require.NoError(c.t, err)
		out = append(out, e)
	}
	return out
}

// compare compares each opening with the model.
func (c *round) compare(m *model) {
	for i, j := range c.opens {
		require.True(c.t, slices.EqualFunc(c.entries(j), m.entries, same), "the entries of opening %d", i)
		open, err := j.Unfinished(c.t.Context())
		require.NoError(c.t, err)
		require.Equal(c.t, m.unfinished(), open)
		h, err := j.Head(c.t.Context())
		require.NoError(c.t, err)
		require.Equal(c.t, m.root(), h.Root)
	}
}
