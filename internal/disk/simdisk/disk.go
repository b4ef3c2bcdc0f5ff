package simdisk

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/disk"
)

const (
	top    = 1 // the inode of the root
	device = 1
)

// Disk is a file system in memory. Its methods are safe for concurrent use.
type Disk struct {
	watch func(op string)

	mu      sync.Mutex // never held across a wait
	now     image      // what programs see
	medium  image      // the state on the medium
	created image      // every inode as it was created
	pending []op
	next    uint64 // inode number
	ops     int    // number of operations ever performed
	writers map[uint64]int
}

// New returns an empty disk.
func New() *Disk {
	root := &node{kind: disk.TypeDir, perm: 0o755, owner: self().Owner, links: 1, mtime: start, ctime: start}
	return &Disk{
		now: image{top: root}, medium: image{top: root}, created: image{top: root},
		next: top + 1, writers: map[uint64]int{},
	}
}

// start is the time of an empty disk, whose clock moves with each operation.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func (d *Disk) time() time.Time { return start.Add(time.Duration(d.ops) * time.Millisecond) }

// Watch makes the disk call f after each operation that changed the visible
// state or the medium, on the goroutine that performed it. A clone is not
// watched.
func (d *Disk) Watch(f func(op string)) { d.watch = f }

// Root opens the root directory.
func (d *Disk) Root() disk.Root { return newRoot(d) }

// Clone returns a disk in the same state, without openings.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{
		now: maps.Clone(d.now), medium: maps.Clone(d.medium), created: maps.Clone(d.created), pending: slices.Clone(d.pending),
		next: d.next, ops: d.ops, writers: map[uint64]int{},
	}
}

// do adds an operation that has just happened. It needs the pending operations
// that share a name or an inode with it, by the rules of the package.
func (d *Disk) do(o op) {
	d.ops++
	o.id, o.at = d.ops, d.time()
	for _, p := range d.pending {
		if p.before(o) {
			o.needs = append(o.needs, p.id)
		}
	}
	d.pending = append(d.pending, o)
	d.now.apply(o, d.created)
}

// before reports whether o needs p.
func (p op) before(o op) bool {
	if p.meta != nil && o.meta != nil {
		return p.ino == o.ino
	}
	for _, a := range p.edits {
		for _, b := range o.edits {
			if a.dir == b.dir && a.name == b.name {
				return true
			}
		}
	}
	in := func(edits []edit, ino uint64) bool {
		return slices.ContainsFunc(edits, func(e edit) bool { return e.dir == ino })
	}
	for _, ino := range p.moved() {
		if slices.Contains(o.moved(), ino) || in(o.edits, ino) {
			return true
		}
	}
	return slices.ContainsFunc(o.moved(), func(ino uint64) bool { return in(p.edits, ino) })
}

// moved returns the inodes that gained or lost a name.
func (o op) moved() (inodes []uint64) {
	for _, e := range o.edits {
		if e.ino != 0 {
			inodes = append(inodes, e.ino)
		}
	}
	if o.gone != 0 {
		inodes = append(inodes, o.gone)
	}
	return inodes
}

// settle makes the selected pending operations durable, with those that they
// need. It reports whether there were any.
func (d *Disk) settle(which func(op) bool) bool {
	chosen := map[int]bool{}
	for _, o := range slices.Backward(d.pending) {
		if chosen[o.id] || which(o) {
			chosen[o.id] = true
			for _, n := range o.needs {
				chosen[n] = true
			}
		}
	}
	var left []op
	for _, o := range d.pending {
		if chosen[o.id] {
			d.medium.apply(o, d.created)
			continue
		}
		o.needs = slices.DeleteFunc(slices.Clone(o.needs), func(n int) bool { return chosen[n] })
		left = append(left, o)
	}
	some := len(left) < len(d.pending)
	d.pending = left
	return some
}

// make adds a new inode and returns its number.
func (d *Disk) make(n node) uint64 {
	ino := d.next
	d.next++
	n.mtime, n.ctime = d.time(), d.time()
	d.created[ino] = &n
	return ino
}

// notify calls the watcher, outside the lock.
func (d *Disk) notify(what string) {
	if d.watch != nil {
		d.watch(what)
	}
}

// Crash ends every process that has the disk open: nothing is lost.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.writers)
}

// Pending describes the operations that are not durable, in order. Needs are
// indexes of the same list.
func (d *Disk) Pending() []Operation {
	d.mu.Lock()
	defer d.mu.Unlock()
	place := map[int]int{}
	out := make([]Operation, len(d.pending))
	for i, o := range d.pending {
		place[o.id] = i
		out[i] = Operation{What: o.what, Content: o.write != nil && len(o.write.data) > 0}
		for _, n := range o.needs {
			out[i].Needs = append(out[i].Needs, place[n])
		}
	}
	return out
}

// Operation is an operation that is not durable.
type Operation struct {
	What    string
	Content bool  // it writes content, and can be incomplete
	Needs   []int // operations that it needs
}

// Cut is a power failure: keep selects the pending operations on the medium.
// The one at index half, unless half is negative, is incomplete. Cut panics if
// it would keep an operation without one that it needs.
func (d *Disk) Cut(keep []bool, half int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := map[int]bool{}
	for i, o := range d.pending {
		if !keep[i] {
			continue
		}
		for _, n := range o.needs {
			if !kept[n] && slices.ContainsFunc(d.pending, func(p op) bool { return p.id == n }) {
				panic("simdisk: an operation is kept without what it needs")
			}
		}
		kept[o.id] = true
		if i == half && o.write != nil {
			w := *o.write
			w.data = w.data[:len(w.data)/2]
			o.write = &w
		}
		d.medium.apply(o, d.created)
	}
	d.medium.sweep()
	d.medium.recount()
	d.now, d.pending = maps.Clone(d.medium), nil
	d.created = maps.Clone(d.medium)
	clear(d.writers)
}

// Describe writes the visible state. If they differ, it also writes the state
// on the medium and the pending operations. Equal texts are equal states,
// except for times and inode numbers.
func (d *Disk) Describe(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.describe(w)
	if len(d.pending) == 0 {
		return
	}
	_, _ = io.WriteString(w, "medium\n")
	d.medium.describe(w)
	for _, o := range d.pending {
		_, _ = fmt.Fprintln(w, o.what)
	}
}

func (i image) describe(w io.Writer) {
	alias := map[*node]string{}
	i.paths(top, "", func(path string, n *node) {
		line := path + "\x00" + n.kind.String() + "\x00" + strconv.FormatUint(uint64(n.perm), 8) + "\x00" + n.target + "\x00" + string(n.data)
		if first, ok := alias[n]; ok && n.kind != disk.TypeDir {
			line += "\x00" + first
		}
		alias[n] = path
		for _, key := range slices.Sorted(maps.Keys(n.xattrs)) {
			line += "\x00" + key + "=" + string(n.xattrs[key])
		}
		_, _ = io.WriteString(w, line+"\n")
	})
}

// Files returns the visible files, by path: type, bits, time, content or
// target, and attributes.
func (d *Disk) Files() map[string]File {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]File{}
	d.now.paths(top, "", func(path string, n *node) {
		f := File{Type: n.kind, Perm: n.perm, Content: string(n.data) + n.target, Attributes: map[string]string{}}
		if n.kind == disk.TypeFile {
			f.Mtime = n.mtime
		}
		for key, value := range n.xattrs {
			f.Attributes[key] = string(value)
		}
		out[path] = f
	})
	return out
}

// File is the part of a file that a revert restores.
type File struct {
	Type       disk.Type
	Perm       fs.FileMode
	Mtime      time.Time // of a regular file
	Content    string    // content, or the target of a link
	Attributes map[string]string
}
