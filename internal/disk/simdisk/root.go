package simdisk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/remit-dev/remit/internal/disk"
)

// root is one opening of the root directory.
type root struct {
	disk     *Disk
	open     *opened
	straight *root // a view whose walks follow no link; nil: this root
	direct   bool
}

func newRoot(d *Disk) *root {
	o := new(opened)
	return &root{disk: d, open: o, straight: &root{disk: d, open: o, direct: true}}
}

// opened is shared by the views of one root.
type opened struct{ closed atomic.Bool }

var errNoPath = errors.New("a simulated disk has no place on the host")

// enter begins an operation on one name, which f performs under the disk's
// lock. If f changed something, enter calls the watcher.
func (r *root) enter(what, name string, check func(string) error, f func() (changed bool, err error)) error {
	err := check(name)
	if err == nil {
		err = r.run(what+" "+name, f)
	}
	if err != nil {
		return &fs.PathError{Op: what, Path: name, Err: err}
	}
	return nil
}

func (r *root) run(what string, f func() (bool, error)) error {
	if r.open.closed.Load() {
		return fs.ErrClosed
	}
	r.disk.mu.Lock()
	changed, err := f()
	r.disk.mu.Unlock()
	if changed {
		r.disk.notify(what)
	}
	return err
}

// both is enter for an operation on two names.
func (r *root) both(what, from, to string, f func() error) error {
	err := errors.Join(disk.CheckPath(from), disk.CheckPath(to))
	if err == nil {
		err = r.run(what+" "+from+" "+to, func() (bool, error) {
			err := f()
			return err == nil, err
		})
	}
	if err != nil {
		return &os.LinkError{Op: what, Old: from, New: to, Err: err}
	}
	return nil
}

// orRoot is disk.CheckPath for operations that also act on the root.
func orRoot(name string) error {
	if name == "." {
		return nil
	}
	return disk.CheckPath(name)
}

func checkPerm(perm fs.FileMode) error {
	if perm&^disk.PermMask != 0 {
		return fs.ErrInvalid
	}
	return nil
}

// WithoutLinks returns the view of the root whose walks follow no link.
func (r *root) WithoutLinks() disk.Root {
	if r.straight == nil {
		return r
	}
	return r.straight
}

func (r *root) look(name string, f func(ino uint64, n *node) error) error {
	return r.lookAt("lstat", name, f)
}

// lookAt runs f on the inode of a name.
func (r *root) lookAt(what, name string, f func(ino uint64, n *node) error) error {
	return r.enter(what, name, orRoot, func() (bool, error) {
		ino, err := r.disk.find(name, false, r.direct)
		if err != nil {
			return false, err
		}
		return false, f(ino, r.disk.now[ino])
	})
}

func (n *node) info(ino uint64, name string) disk.Info {
	i := disk.Info{
		Name: path.Base(name), Type: n.kind, Perm: n.perm, Size: int64(len(n.data) + len(n.target)),
		Mtime: n.mtime, Ctime: n.ctime, Inode: ino, Device: device, Links: n.links, Owner: n.owner,
	}
	if n.kind == disk.TypeDir {
		i.Links++
	}
	return i
}

func (r *root) Lstat(name string) (info disk.Info, err error) {
	err = r.look(name, func(ino uint64, n *node) error {
		info = n.info(ino, name)
		return nil
	})
	return info, err
}

func (r *root) ReadDir(name string) (entries []disk.Info, err error) {
	err = r.lookAt("readdir", name, func(_ uint64, n *node) error {
		if n.kind != disk.TypeDir {
			return disk.ErrType
		}
		for base, ino := range n.names {
			entries = append(entries, r.disk.now[ino].info(ino, base))
		}
		slices.SortFunc(entries, func(a, b disk.Info) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return entries, err
}

func (r *root) Readlink(name string) (target string, err error) {
	err = r.enter("readlink", name, disk.CheckPath, func() (bool, error) {
		ino, err := r.disk.find(name, false, r.direct)
		if err != nil {
			return false, err
		}
		n := r.disk.now[ino]
		if n.kind != disk.TypeLink {
			return false, disk.ErrType
		}
		target = n.target
		return false, nil
	})
	return target, err
}

// added gives a free name to a new inode.
func (r *root) added(what, name string, n node) error {
	return r.enter(what, name, disk.CheckPath, func() (bool, error) {
		_, err := r.add(what, name, n)
		return err == nil, err
	})
}

// add is added, under the lock.
func (r *root) add(what, name string, n node) (ino uint64, err error) {
	at, err := r.free(name)
	if err != nil {
		return 0, err
	}
	n.owner = self().Owner
	if folder := r.disk.now[at.dir]; folder.perm&fs.ModeSetgid != 0 {
		n.owner.Group = folder.owner.Group
	}
	ino = r.disk.make(n)
	r.disk.do(op{what: what + " " + name, edits: []edit{{at.dir, at.name, ino}}})
	return ino, nil
}

func (r *root) Symlink(target, name string) error {
	check := func(name string) error { return errors.Join(disk.CheckPath(name), disk.CheckTarget(target)) }
	if err := check(name); err != nil {
		return &fs.PathError{Op: "symlink", Path: name, Err: err}
	}
	return r.added("symlink", name, node{kind: disk.TypeLink, perm: 0o777, target: target})
}

func (r *root) Mkdir(name string, perm fs.FileMode) error {
	if err := checkPerm(perm); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return r.added("mkdir", name, node{kind: disk.TypeDir, perm: perm})
}

// alter changes the metadata of an inode of one of some kinds.
func (r *root) alter(what, name string, m meta, kinds ...disk.Type) error {
	return r.enter(what, name, orRoot, func() (bool, error) {
		ino, err := r.disk.find(name, false, r.direct)
		switch {
		case err != nil:
			return false, err
		case !slices.Contains(kinds, r.disk.now[ino].kind):
			return false, disk.ErrType
		}
		if _, have := r.disk.now[ino].xattrs[m.xattr]; m.remove && !have {
			return false, fs.ErrNotExist
		}
		r.disk.do(op{what: what + " " + name, ino: ino, meta: &m})
		return true, nil
	})
}

func (r *root) Chmod(name string, perm fs.FileMode) error {
	if err := checkPerm(perm); err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	return r.alter("chmod", name, meta{perm: &perm}, disk.TypeFile, disk.TypeDir)
}

func (r *root) Chown(name string, o disk.Owner) error {
	if !o.Known {
		return &fs.PathError{Op: "chown", Path: name, Err: disk.ErrUnsupported}
	}
	return r.alter("chown", name, meta{owner: &o}, disk.TypeFile, disk.TypeDir, disk.TypeLink)
}

func (r *root) SetMtime(name string, t time.Time) error {
	t = t.UTC()
	return r.alter("chtimes", name, meta{mtime: &t}, disk.TypeFile, disk.TypeDir, disk.TypeLink)
}

func (r *root) Xattrs(name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := r.lookAt("getxattr", name, func(_ uint64, n *node) error {
		for key, value := range n.xattrs {
			out[key] = slices.Clone(value)
		}
		return nil
	})
	return out, err
}

func (r *root) SetXattr(name, key string, value []byte) error {
	if err := disk.CheckXattr(key); err != nil {
		return &fs.PathError{Op: "setxattr", Path: name, Err: err}
	}
	m := meta{xattr: key, value: append([]byte{}, value...)}
	return r.alter("setxattr", name, m, disk.TypeFile, disk.TypeDir)
}

func (r *root) RemoveXattr(name, key string) error {
	if err := disk.CheckXattr(key); err != nil {
		return &fs.PathError{Op: "removexattr", Path: name, Err: err}
	}
	return r.alter("removexattr", name, meta{xattr: key, remove: true}, disk.TypeFile, disk.TypeDir)
}

func (r *root) Link(name, as string) error {
	return r.both("link", name, as, func() error {
		from, err := r.disk.entry(name, r.direct)
		if err != nil {
			return err
		}
		if r.disk.now[from.ino].kind != disk.TypeFile {
			return disk.ErrType
		}
		to, err := r.free(as)
		if err != nil {
			return err
		}
		r.disk.do(op{what: "link " + name + " " + as, edits: []edit{{to.dir, to.name, from.ino}}})
		return nil
	})
}

// free finds the entry of a name that must be free.
func (r *root) free(name string) (edit, error) {
	e, err := r.disk.entry(name, r.direct)
	if err == nil {
		return e, fs.ErrExist
	}
	if errors.Is(err, fs.ErrNotExist) && e.dir != 0 {
		return e, nil
	}
	return e, err
}

func (r *root) Remove(name string) error {
	return r.enter("remove", name, disk.CheckPath, func() (bool, error) {
		e, err := r.disk.entry(name, r.direct)
		if err != nil {
			return false, err
		}
		if len(r.disk.now[e.ino].names) > 0 {
			return false, fs.ErrExist
		}
		// Both the name and its inode: earlier changes of either come first.
		r.disk.unlink("remove "+name, e)
		return true, nil
	})
}

// unlink removes a name.
func (d *Disk) unlink(what string, e edit) {
	d.do(op{what: what, gone: e.ino, edits: []edit{{e.dir, e.name, 0}}})
}

func (r *root) Exchange(a, b string) error {
	return r.both("exchange", a, b, func() error {
		if inside(a, b) || inside(b, a) {
			return disk.ErrPath
		}
		one, err := r.disk.entry(a, r.direct)
		if err != nil {
			return err
		}
		two, err := r.disk.entry(b, r.direct)
		if err != nil {
			return err
		}
		if one != two {
			r.disk.do(op{what: "exchange " + a + " " + b, edits: []edit{{one.dir, one.name, two.ino}, {two.dir, two.name, one.ino}}})
		}
		return nil
	})
}

func (r *root) RenameNoReplace(from, to string) error {
	return r.both("rename", from, to, func() error {
		if inside(to, from) {
			return disk.ErrPath
		}
		was, err := r.disk.entry(from, r.direct)
		if err != nil {
			return err
		}
		will, err := r.free(to)
		if err != nil {
			return err
		}
		r.disk.do(op{what: "rename " + from + " " + to, edits: []edit{{will.dir, will.name, was.ino}, {was.dir, was.name, 0}}})
		return nil
	})
}

func (r *root) SyncDir(name string) error {
	return r.enter("syncdir", name, orRoot, func() (bool, error) {
		ino, err := r.disk.find(name, false, r.direct)
		if err != nil {
			return false, err
		}
		if r.disk.now[ino].kind != disk.TypeDir {
			return false, disk.ErrType
		}
		return r.disk.settle(func(o op) bool {
			return o.ino == ino || slices.ContainsFunc(o.edits, func(e edit) bool { return e.dir == ino })
		}), nil
	})
}

func (r *root) SyncAll() error {
	return r.enter("syncall", ".", orRoot, func() (bool, error) {
		return r.disk.settle(func(op) bool { return true }), nil
	})
}

func (r *root) TryLease(name string) error {
	return r.lookAt("quiet", name, func(ino uint64, _ *node) error {
		if r.disk.writers[ino] > 0 {
			return disk.ErrBusy
		}
		return nil
	})
}

func (r *root) Identity() disk.Identity { return disk.Identity{Device: device, Inode: top, Created: 1} }

func (r *root) Path() (string, error) {
	return "", &fs.PathError{Op: "path", Path: ".", Err: errNoPath}
}

// self has all permissions: there is one user on this disk.
func self() disk.Self {
	return disk.Self{Owner: disk.Owner{Known: true}, Gives: true, Administers: true, Capabilities: true}
}

func (r *root) Self() disk.Self { return self() }

func (r *root) Features() disk.Features {
	return disk.Features{Straight: r.direct, Beneath: true, Exchange: true, NoReplace: true, Lease: true, Xattrs: true, DirSync: true, SyncAll: true}
}

func (r *root) Close() error {
	r.open.closed.Store(true)
	return nil
}
