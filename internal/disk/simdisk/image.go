package simdisk

import (
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/remit-dev/remit/internal/disk"
)

// node is an inode. A node in an image never changes: a change replaces it, so
// that images can share nodes.
type node struct {
	kind   disk.Type
	perm   fs.FileMode
	owner  disk.Owner
	mtime  time.Time
	ctime  time.Time
	data   []byte
	target string
	xattrs map[string][]byte
	names  map[string]uint64 // for a directory
	links  uint64            // number of names
}

// image is one state of the file system.
type image map[uint64]*node

// change replaces an inode in the image with a copy, and returns the copy.
func (i image) change(ino uint64) *node {
	n := *i[ino]
	i[ino] = &n
	return &n
}

// op is one operation that may not be on the medium yet.
type op struct {
	id    int
	what  string
	at    time.Time
	edits []edit // directory entries: all of them or none
	gone  uint64 // the inode that lost a name
	ino   uint64 // for an operation on an inode
	write *dataRange
	meta  *meta
	needs []int // IDs of the operations that it needs
}

// edit sets a name in a directory to an inode, or removes it.
type edit struct {
	dir  uint64
	name string
	ino  uint64 // 0: the name is removed
}

// dataRange is a range of content.
type dataRange struct {
	at   int
	data []byte
}

// meta is a change of an inode's metadata.
type meta struct {
	perm   *fs.FileMode
	owner  *disk.Owner
	mtime  *time.Time
	xattr  string
	value  []byte
	remove bool // remove the attribute
}

// apply applies an operation. born are the inodes as they were created: the
// target of an entry exists at least in that form.
func (i image) apply(o op, born image) {
	for _, e := range o.edits {
		i.appear(e.dir, born)
		i.appear(e.ino, born)
	}
	for _, e := range o.edits {
		i.relink(e, o.at)
	}
	if o.ino == 0 {
		return
	}
	i.appear(o.ino, born)
	n := i.change(o.ino)
	n.ctime = o.at
	if w := o.write; w != nil {
		n.data = spliced(n.data, *w)
		n.weaken()
		n.mtime = o.at
	}
	if o.meta != nil {
		n.alter(*o.meta)
	}
}

func (i image) appear(ino uint64, born image) {
	if _, ok := i[ino]; !ok && ino != 0 {
		i[ino] = born[ino]
	}
}

func (i image) relink(e edit, at time.Time) {
	dir := i.change(e.dir)
	dir.names = maps.Clone(dir.names)
	if dir.names == nil {
		dir.names = map[string]uint64{}
	}
	if was, ok := dir.names[e.name]; ok {
		i.count(was, -1, at)
	}
	dir.mtime, dir.ctime = at, at
	if e.ino == 0 {
		delete(dir.names, e.name)
		return
	}
	dir.names[e.name] = e.ino
	i.count(e.ino, 1, at)
}

func (i image) count(ino uint64, by int, at time.Time) {
	n := i.change(ino)
	if by < 0 {
		n.links--
	} else {
		n.links++
	}
	n.ctime = at
}

func (n *node) alter(m meta) {
	if m.perm != nil {
		n.perm = *m.perm
	}
	if m.owner != nil {
		n.owner = *m.owner
		if n.kind == disk.TypeFile {
			n.perm &^= fs.ModeSetuid | fs.ModeSetgid
			n.weaken()
		}
	}
	if m.mtime != nil {
		n.mtime = *m.mtime
	}
	if m.xattr == "" {
		return
	}
	n.xattrs = maps.Clone(n.xattrs)
	if n.xattrs == nil {
		n.xattrs = map[string][]byte{}
	}
	if m.remove {
		delete(n.xattrs, m.xattr)
	} else {
		n.xattrs[m.xattr] = m.value
	}
}

// weaken removes the bits and capabilities for execution as another user, as
// the kernel does when content or owner change.
func (n *node) weaken() {
	if _, has := n.xattrs[disk.XattrCapability]; has {
		n.xattrs = maps.Clone(n.xattrs)
		delete(n.xattrs, disk.XattrCapability)
	}
}

// spliced returns content with a range written into it; a gap is filled with
// zeros.
func spliced(data []byte, w dataRange) []byte {
	out := make([]byte, max(len(data), w.at+len(w.data)))
	copy(out, data)
	copy(out[w.at:], w.data)
	return out
}

// sweep deletes inodes without a name.
func (i image) sweep() {
	seen := map[uint64]bool{}
	var walk func(ino uint64)
	walk = func(ino uint64) {
		if seen[ino] {
			return
		}
		seen[ino] = true
		for _, below := range i[ino].names {
			walk(below)
		}
	}
	walk(top)
	for ino := range i {
		if !seen[ino] {
			delete(i, ino)
		}
	}
}

// recount sets the link counts to the number of names.
func (i image) recount() {
	count := map[uint64]uint64{top: 1}
	for _, n := range i {
		for _, below := range n.names {
			count[below]++
		}
	}
	for ino := range i {
		if i[ino].links != count[ino] {
			i.change(ino).links = count[ino]
		}
	}
}

// paths visits all named files, in order.
func (i image) paths(dir uint64, prefix string, visit func(path string, n *node)) {
	for _, name := range slices.Sorted(maps.Keys(i[dir].names)) {
		n := i[i[dir].names[name]]
		visit(prefix+name, n)
		if n.kind == disk.TypeDir {
			i.paths(i[dir].names[name], prefix+name+"/", visit)
		}
	}
}
