package treecheck

import (
	"cmp"
	"fmt"
	"slices"
)

// Field says what differs.
type Field string

// The fields that Compare reports.
const (
	Missing  Field = "missing" // The path is in the wanted tree alone.
	Extra    Field = "extra"   // The path is in the other tree alone.
	Type     Field = "type"    // Compare reports no other field of such a path.
	Mode     Field = "mode"
	Owner    Field = "owner"
	Group    Field = "group"
	Content  Field = "content" // Size or bytes of a regular file.
	Target   Field = "target"  // Target of a symlink.
	Mtime    Field = "mtime"   // Modification time of an entry that is no directory.
	DirMtime Field = "directory mtime"
	Xattr    Field = "xattr"  // Difference.Name is the name of the attribute.
	ACL      Field = "acl"    // Difference.Name is the name of the attribute.
	Links    Field = "links"  // Names of the inode, inside or outside of the tree.
	Sparse   Field = "sparse" // Holes of a file with equal content.
	Device   Field = "device" // Numbers of a device.
)

// Difference is one field of one path that two trees describe differently.
type Difference struct {
	Path  string
	Field Field
	// Name is the name of an extended attribute, for Xattr and ACL only.
	Name string
	// Want and Got are the two values in a readable form. Large values appear as
	// digests.
	Want, Got string
}

func (d Difference) String() string {
	field := string(d.Field)
	if d.Name != "" {
		field += " " + d.Name
	}
	return fmt.Sprintf("%q: %s: want %s, got %s", d.Path, field, d.Want, d.Got)
}

const absent = "absent"

// sparseSlack is how many bytes a file must have less on disk than in size
// before Compare calls the file sparse by allocation. Below, attributes and
// extent lists that the file system stores in blocks of their own blur the count.
const sparseSlack = 64 << 10

// Compare returns what differs between two trees, in the order of the paths. Both
// trees must be in the order that Capture returns. Compare reports Sparse only
// for files with equal content.
func Compare(want, got Tree) []Difference {
	c := comparison{links: map[[2]*LinkGroup]bool{}}
	w, g := want.Entries, got.Entries
	for len(w) > 0 || len(g) > 0 {
		switch order := nextPath(w, g); {
		case order < 0:
			c.add(&w[0], Missing, "", string(w[0].Type), absent)
			w = w[1:]
		case order > 0:
			c.add(&g[0], Extra, "", absent, string(g[0].Type))
			g = g[1:]
		default:
			c.entry(&w[0], &g[0])
			w, g = w[1:], g[1:]
		}
	}
	return c.found
}

// nextPath compares the first paths of two lists of which at most one is empty.
func nextPath(w, g []Entry) int {
	switch {
	case len(w) == 0:
		return 1
	case len(g) == 0:
		return -1
	default:
		return comparePaths(w[0].Path, g[0].Path)
	}
}

// comparePaths orders paths as Capture does: the root first, and a slash before
// every other byte.
func comparePaths(a, b string) int {
	if a == "." {
		a = ""
	}
	if b == "." {
		b = ""
	}
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' {
			return 1
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}

type comparison struct {
	found []Difference
	links map[[2]*LinkGroup]bool // results of equalLinks
}

func (c *comparison) add(e *Entry, field Field, name, want, got string) {
	c.found = append(c.found, Difference{Path: e.Path, Field: field, Name: name, Want: want, Got: got})
}

// text adds a difference if two readable values differ.
func (c *comparison) text(e *Entry, field Field, want, got string) {
	if want != got {
		c.add(e, field, "", want, got)
	}
}

func (c *comparison) entry(w, g *Entry) {
	if w.Type != g.Type {
		c.add(w, Type, "", string(w.Type), string(g.Type))
		return
	}
	c.text(w, Mode, modeText(w.Mode), modeText(g.Mode))
	c.text(w, Owner, fmt.Sprint(w.UID), fmt.Sprint(g.UID))
	c.text(w, Group, fmt.Sprint(w.GID), fmt.Sprint(g.GID))
	if w.Size != g.Size || w.Digest != g.Digest {
		c.add(w, Content, "", contentText(w), contentText(g))
	} else if differInHoles(w, g) {
		c.add(w, Sparse, "", sparseText(w), sparseText(g))
	}
	c.text(w, Target, fmt.Sprintf("%q", w.Target), fmt.Sprintf("%q", g.Target))
	mtime := Mtime
	if w.Type == Directory {
		mtime = DirMtime
	}
	c.text(w, mtime, w.Mtime.String(), g.Mtime.String())
	c.xattrs(w, g)
	if !c.equalLinks(w.Links, g.Links) {
		c.add(w, Links, "", w.Links.String(), g.Links.String())
	}
	c.text(w, Device, deviceText(w), deviceText(g))
}

func (c *comparison) xattrs(w, g *Entry) {
	a, b := w.Xattrs, g.Xattrs
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			c.add(w, a[0].field(), a[0].Name, a[0].String(), absent)
			a = a[1:]
		case len(a) == 0 || a[0].Name > b[0].Name:
			c.add(w, b[0].field(), b[0].Name, absent, b[0].String())
			b = b[1:]
		default:
			if a[0] != b[0] {
				c.add(w, a[0].field(), a[0].Name, a[0].String(), b[0].String())
			}
			a, b = a[1:], b[1:]
		}
	}
}

func (x Attribute) field() Field {
	if x.isACL() {
		return ACL
	}
	return Xattr
}

// equalLinks reports whether two groups have the same names. It compares each
// pair of groups once, because each of n names points at the same n names.
func (c *comparison) equalLinks(w, g *LinkGroup) bool {
	if w == nil || g == nil {
		return w == g
	}
	pair := [2]*LinkGroup{w, g}
	equal, known := c.links[pair]
	if !known {
		equal = w.Count == g.Count && slices.Equal(w.Paths, g.Paths)
		c.links[pair] = equal
	}
	return equal
}

// differInHoles reports whether the bytes in holes differ, or whether the
// allocation of one file leaves holes and the other is fully allocated.
func differInHoles(w, g *Entry) bool {
	return w.Data != g.Data || sparseOnDisk(w) && fullOnDisk(g) || fullOnDisk(w) && sparseOnDisk(g)
}

func sparseOnDisk(e *Entry) bool { return e.Size-e.Allocated > sparseSlack }
func fullOnDisk(e *Entry) bool   { return e.Allocated >= e.Size }

func modeText(mode uint32) string { return fmt.Sprintf("%#04o", mode) }

func contentText(e *Entry) string { return fmt.Sprintf("%d bytes, digest %x", e.Size, e.Digest) }

func sparseText(e *Entry) string {
	return fmt.Sprintf("%d of %d bytes outside of holes, %d allocated", e.Data, e.Size, e.Allocated)
}

func deviceText(e *Entry) string { return fmt.Sprintf("%d:%d", e.Major, e.Minor) }
