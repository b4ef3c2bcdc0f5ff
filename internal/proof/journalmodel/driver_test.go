package journalmodel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/remit-dev/remit/revert/journal"
)

// opening is one opening of the journal.
type opening struct {
	n     *node
	slot  int
	owner string
}

// stats counts what was done.
type stats struct{ ops, appends, refusals, entries, queries, kills, copies, fscks, gcs, erases, closes, scans, marks, left int }

// driver makes random operations and compares the answers with the model.
type driver struct {
	t     *testing.T
	r     *rand.Rand
	dir   string // of the journal
	tmp   string
	m     *model
	nodes []*node
	copy  *node // has no opening
	opens []*opening
	dead  []string // owners
	log   []string
	st    *stats
	calls []string
	markN int
	at    int64
	blobs []wBlob // stored content that entries may name
}

// newDriver returns a driver for a new journal.
func newDriver(t *testing.T, seed uint64, st *stats) *driver {
	tmp := memoryDir(t)
	return &driver{t: t, r: rand.New(rand.NewPCG(seed, 7)), dir: filepath.Join(tmp, "j"), tmp: tmp, m: newModel(), st: st, copy: child(t)}
}

// memoryDir returns a folder in memory if there is one: nothing here must
// survive the machine.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "remit-journalmodel-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// failf ends the test, with the last operations.
func (d *driver) failf(f string, a ...any) {
	tail := d.log
	if len(tail) > 25 {
		tail = tail[len(tail)-25:]
	}
	d.t.Helper()
	d.t.Fatal(fmt.Sprintf(f, a...) + "\n  log:\n  " + strings.Join(tail, "\n  "))
}

func (d *driver) note(f string, a ...any) { d.log = append(d.log, fmt.Sprintf(f, a...)) }

func (d *driver) pick() *opening { return d.opens[d.r.IntN(len(d.opens))] }

// do sends a request to an opening.
func (d *driver) do(o *opening, r req) rsp {
	r.Slot = o.slot
	d.st.ops++
	out, err := o.n.call(r)
	if err != nil {
		d.failf("process of opening %d died: %v", o.slot, err)
	}
	return out
}

func (d *driver) append(o *opening, b wBatch) {
	want := d.m.expect(b)
	got := d.do(o, req{Op: "append", Batch: b})
	d.note("append by %d n=%d take=%v fence=%v claims=%d end=%v erase=%q durable=%v -> %q (want %v)", o.slot, len(b.Entries), b.Take, b.Fence, len(b.Claims), b.End, b.Erase, b.Durable, got.Err, want)
	d.st.appends++
	d.judge(b, want, got)
}

// stored notes a stored batch.
func (d *driver) stored(b wBatch) {
	d.m.apply(b)
	d.st.entries += len(b.Entries)
	if len(b.Erase) > 0 {
		d.st.erases++
	}
}

// judge compares the answer to an append with the model's.
func (d *driver) judge(b wBatch, want []string, got rsp) {
	switch {
	case len(want) == 0 && got.Err == "":
		d.stored(b)
	case len(want) == 0:
		d.failf("append refused: %s", got.Err)
	case got.Err == "":
		d.failf("append stored, want %v", want)
	default:
		d.st.refusals++
		k := got.Kind
		if k == "other" && want[0] == "invalid" {
			return
		}
		if !slices.Contains(want, k) {
			d.failf("append: %s (%s), want %v", got.Err, k, want)
		}
		if k == "claimed" && (d.m.claims[got.Res] != got.Holder || !slices.Contains(b.Claims, got.Res)) {
			d.failf("claimed error names %q held by %q; model has %q", got.Res, got.Holder, d.m.claims[got.Res])
		}
	}
}

func (d *driver) open(n *node) {
	slot := d.r.IntN(1 << 30)
	got, err := n.call(req{Op: "open", Slot: slot, Dir: d.dir})
	if err != nil || got.Err != "" {
		d.failf("open: %v %s", err, got.Err)
	}
	d.note("open %d", slot)
	d.opens = append(d.opens, &opening{n: n, slot: slot, owner: got.Owner})
}

func (d *driver) close(i int) {
	o := d.opens[i]
	got := d.do(o, req{Op: "close"})
	d.note("close %d %s", o.slot, got.Err)
	if got.Err != "" {
		d.failf("close: %s", got.Err)
	}
	d.dead = append(d.dead, o.owner)
	d.opens = slices.Delete(d.opens, i, i+1)
	d.st.closes++
}

// step makes one random operation. An outer step may also kill and copy.
func (d *driver) step(outer bool) {
	o := d.pick()
	switch x := d.r.IntN(1000); {
	case x < 640:
		d.appendAny(o)
	case x < 840:
		d.query(o, d.randQuery())
	case x < 870:
		d.headAndAll(o)
	case x < 930:
		d.store(o)
	case x < 955:
		d.content(o)
	case x < 965:
		d.alive(o)
	case x < 971:
		d.gc(o)
	case x < 980:
		if len(d.opens) < 4 {
			d.open(d.anyNode())
		}
	case x < 987:
		d.closeAny(outer)
	case outer && x < 989:
		d.fsck(d.dir)
	case outer && x < 993:
		d.crashCopy()
	case outer:
		d.killAny()
	}
}

func (d *driver) anyNode() *node { return d.nodes[d.r.IntN(len(d.nodes))] }

// appendAny appends a batch, and reads what it erased.
func (d *driver) appendAny(o *opening) {
	b := d.batch(o, -1)
	d.append(o, b)
	if len(b.Erase) > 0 {
		d.query(d.pick(), journal.Query{Call: b.Erase[0], Newest: d.r.IntN(2) == 0})
		d.query(d.pick(), journal.Query{After: max(0, int64(len(d.m.entries)-20))})
	}
}

// alive asks about a living or dead owner.
func (d *driver) alive(o *opening) {
	owner, live := o.owner, true
	if len(d.dead) > 0 && d.r.IntN(2) == 0 {
		owner, live = d.dead[d.r.IntN(len(d.dead))], false
	}
	if a := d.do(d.pick(), req{Op: "alive", Owner: owner}); a.Err != "" || a.Alive != live {
		d.failf("alive %s: %v %s", owner, a.Alive, a.Err)
	}
}

// closeAny closes an opening. If it was the last one, another one follows.
func (d *driver) closeAny(outer bool) {
	if len(d.opens) == 1 && d.r.IntN(3) > 0 {
		return
	}
	d.close(d.r.IntN(len(d.opens)))
	if len(d.opens) > 0 {
		return
	}
	if outer && d.r.IntN(2) == 0 {
		d.fsck(d.dir)
	}
	d.open(d.anyNode())
}
