package journalmodel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// fsck checks the files, but not the order of the random records.
func (d *driver) fsck(dir string) {
	d.st.fscks++
	var probs []string
	_, err := sqlite.Fsck(context.Background(), dir, revert.FsckOptions{Kept: journal.Head{Size: int64(len(d.m.entries)), Root: d.m.root()}, Found: func(p revert.Problem) {
		if t := p.What; derivedRE.MatchString(t) || !expected.MatchString(t) {
			probs = append(probs, fmt.Sprintf("%+v", p))
		}
	}})
	if err != nil && !errors.Is(err, record.ErrDamaged) {
		d.failf("fsck: %v", err)
	}
	if len(probs) > 0 {
		if len(probs) > 5 {
			probs = probs[:5]
		}
		d.failf("fsck: %s", strings.Join(probs, "\n"))
	}
}

// derivedRE matches what fsck says about the files.
var derivedRE = regexp.MustCompile(`the index|the table|is claimed by|hash|leaf|head file|checksum|row|tree|stored under|journal ends|not sealed|file's`)

// expected matches what fsck says about the order of random records
var expected = regexp.MustCompile(`begins with|never|without a|before |after |record of who|whose|no record|unknown|names|not (started|begun|held|ended|open)|owner|twice|second|of a (call|transaction)|content|session|ended|call `)

// copyTo copies the journal in a process without openings: closing a file would
// drop the locks of this one.
func (d *driver) copyTo(to string) {
	got, err := d.copy.call(req{Op: "copy", Dir: d.dir, To: to})
	if err != nil || got.Err != "" {
		d.failf("copy: %v %s", err, got.Err)
	}
}

// crashCopy opens a copy of the files as they are, as after a crash, and works on.
func (d *driver) crashCopy() {
	d.st.copies++
	to := filepath.Join(d.tmp, fmt.Sprintf("copy%d", d.st.copies))
	d.copyTo(to)
	defer func() { _ = os.RemoveAll(to) }() // a temporary folder
	d.note("crash copy")
	if d.r.IntN(4) == 0 {
		d.fsck(to)
	}
	c := *d
	c.dir, c.m = to, d.m.clone()
	c.blobs, c.calls, c.dead = slices.Clone(d.blobs), slices.Clone(d.calls), slices.Clone(d.dead)
	c.opens, c.nodes = nil, []*node{local()}
	c.open(c.nodes[0])
	c.headAndAll(c.opens[0])
	c.query(c.opens[0], journal.Query{})
	for range 20 {
		c.step(false)
	}
	c.headAndAll(c.opens[0])
	for len(c.opens) > 0 {
		c.close(0)
	}
	c.fsck(to)
	d.markN, d.at = c.markN, c.at
}

// killAny kills a child, if there is one.
func (d *driver) killAny() {
	var kids []*node
	for _, n := range d.nodes {
		if n.cmd != nil {
			kids = append(kids, n)
		}
	}
	if len(kids) > 0 {
		d.kill(kids[d.r.IntN(len(kids))])
	}
}

// kill kills a child while it appends, collects or closes. Another one follows.
func (d *driver) kill(n *node) {
	d.st.kills++
	var mine []*opening
	for _, o := range d.opens {
		if o.n == n {
			mine = append(mine, o)
		}
	}
	if len(mine) == 0 {
		n.kill()
		d.replace(n)
		return
	}
	o := mine[d.r.IntN(len(mine))]
	switch d.r.IntN(4) {
	case 0:
		_, _ = n.killIn(req{Op: "gc", Slot: o.slot}, 0, d.r.IntN(2000))
		d.forgetContent()
		d.replace(n)
	case 1:
		_, _ = n.killIn(req{Op: "close", Slot: o.slot}, 0, d.r.IntN(500))
		d.replace(n)
	default:
		d.killInBurst(o)
	}
}

// killInBurst kills a child while it appends many batches. The journal has
// those that it acknowledged, and maybe more of them, in order.
func (d *driver) killInBurst(o *opening) {
	burst := d.burst(o)
	got, err := o.n.killIn(req{Op: "burst", Slot: o.slot, Burst: burst}, d.r.IntN(len(burst)), d.r.IntN(200))
	if err == nil && got.Err != "" {
		d.failf("burst: %s", got.Err)
	}
	d.note("killed %v after %d batches", err, got.Acks)
	for _, b := range burst[:got.Acks] {
		d.stored(b)
	}
	d.st.appends += got.Acks
	next := d.replace(o.n)
	h := d.do(next, req{Op: "head"})
	for _, b := range burst[got.Acks:] {
		if h.Head.Size == int64(len(d.m.entries)) {
			break
		}
		d.stored(b)
	}
	d.headAndAll(next)
	d.query(next, journal.Query{After: max(0, int64(len(d.m.entries)-300))})
}

// burst returns batches that must be stored one after the other.
func (d *driver) burst(o *opening) (burst []wBatch) {
	c := *d
	c.m = d.m.clone()
	for len(burst) < 60 {
		b := c.batch(o, 1+d.r.IntN(3))
		if len(c.m.expect(b)) == 0 {
			burst = append(burst, b)
			c.m.apply(b)
		}
	}
	d.calls, d.markN, d.at = c.calls, c.markN, c.at
	return burst
}

// replace forgets a killed child, and returns an opening of a new one.
func (d *driver) replace(n *node) *opening {
	d.forget(n)
	next := child(d.t)
	d.nodes = append(d.nodes, next)
	d.open(next)
	return d.opens[len(d.opens)-1]
}

// forget removes a killed child and its openings.
func (d *driver) forget(n *node) {
	for _, o := range d.opens {
		if o.n == n {
			d.dead = append(d.dead, o.owner)
		}
	}
	d.opens = slices.DeleteFunc(d.opens, func(o *opening) bool { return o.n == n })
	d.nodes = slices.DeleteFunc(d.nodes, func(x *node) bool { return x == n })
}
