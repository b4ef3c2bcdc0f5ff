package journalmodel_test

import (
	"iter"
	"testing"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// reading is a query that is being read.
type reading struct {
	q    journal.Query
	want []record.Entry
	next func() (record.Entry, error, bool)
	stop func()
	i    int
}

// TestIterators keeps queries open while another opening appends, erases and
// collects: each one returns what was there when it began.
func TestIterators(t *testing.T) {
	readings, steps := 0, 0
	eachSeed(t, 2, 100, func(t *testing.T, seed uint64) {
		d := newDriver(t, seed, &stats{})
		d.nodes = []*node{local()}
		d.open(d.nodes[0])
		d.open(d.nodes[0])
		var live []*reading
		defer func() {
			for _, o := range live {
				o.stop()
			}
		}()
		for range 250 {
			steps++
			if d.r.IntN(100) == 0 {
				d.gc(d.pick())
			}
			d.append(d.pick(), d.batch(d.pick(), -1))
			if len(live) < 5 && d.r.IntN(5) == 0 {
				live = append(live, d.read())
				readings++
			}
			for k := len(live) - 1; k >= 0; k-- {
				if d.readOn(live[k]) {
					live = append(live[:k], live[k+1:]...)
				}
			}
		}
		for _, o := range live {
			o.stop()
		}
		live = nil
		for len(d.opens) > 0 {
			d.close(0)
		}
	})
	t.Logf("%d queries, %d appends", readings, steps)
}

// read begins a query; the first step of readOn decides what it returns.
func (d *driver) read() *reading {
	q := d.randQuery()
	if d.r.IntN(2) == 0 {
		q = journal.Query{Newest: d.r.IntN(2) == 0}
	}
	q.About = nil
	o := &reading{q: q, want: d.m.query(q)}
	from := d.pick()
	o.next, o.stop = iter.Pull2(from.n.srv.open[from.slot].Entries(d.t.Context(), q))
	return o
}

// readOn reads a few more entries, and reports whether the query has ended.
func (d *driver) readOn(o *reading) bool {
	n := d.r.IntN(40)
	if o.i == 0 {
		n++
	}
	for range n {
		e, err, ok := o.next()
		switch {
		case !ok && o.i != len(o.want):
			d.failf("query %+v ended after %d of %d", o.q, o.i, len(o.want))
		case !ok:
			return true
		case err != nil:
			d.failf("query %+v: %v", o.q, err)
		case o.i >= len(o.want) || e.Pos != o.want[o.i].Pos || e.Leaf != o.want[o.i].Leaf:
			d.failf("query %+v: entry %d has position %d", o.q, o.i, e.Pos)
		}
		o.i++
	}
	return false
}
