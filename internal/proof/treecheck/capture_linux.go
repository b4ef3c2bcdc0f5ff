package treecheck

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// maxOpen bounds how many directories Capture holds open at once.
const maxOpen = 128

// errChanged is the state of an entry that another program changed meanwhile.
var errChanged = errors.New("changed during the capture; capture again when no program writes to the tree")

// Capture describes the tree below dir, which must be a directory and not a
// symlink. It follows no link inside the tree, goes into mounted file systems,
// and needs /proc. Memory grows with the number of entries and the length of
// their paths, and not with the size of files.
//
// Capture returns an error that names the path if it cannot read an entry whole,
// or if the tree changes meanwhile. As an ordinary user, a file without read
// permission is such an error, and the kernel hides trusted.* attributes.
// Capture changes access times.
func Capture(dir string) (Tree, error) {
	c := &capture{seen: map[inode]inodeEntry{}, buffer: make([]byte, blockSize)}
	defer c.closeAll()
	if err := c.entry(unix.AT_FDCWD, dir, "."); err != nil {
		return Tree{}, err
	}
	if c.entries[0].Type != Directory {
		return Tree{}, fmt.Errorf("treecheck: %q: has the type %s; name a directory", dir, c.entries[0].Type)
	}
	return Tree{Entries: c.entries}, nil
}

type inode struct{ dev, ino uint64 }

type inodeEntry struct {
	index int // of its first entry
	state state
}

// state is what changes if another program changes an inode.
type state struct {
	inode        inode
	mode         uint32
	uid, gid     uint32
	nlink        uint64
	size         int64
	mtime, ctime unix.Timespec
}

// level is a directory on the way down to the current one.
type level struct {
	fd    int // by O_PATH; -1 if closed meanwhile
	inode inode
}

type capture struct {
	entries []Entry
	seen    map[inode]inodeEntry // inodes with several names
	levels  []level
	buffer  []byte
}

func (c *capture) closeAll() {
	for _, l := range c.levels {
		closeFD(l.fd)
	}
}

// entry describes the entry of a directory, and all below it. path is its path in
// the tree.
func (c *capture) entry(dir int, name, path string) error {
	fd, err := open(dir, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return fail(path, "open", err)
	}
	st, err := stat(fd)
	if err == nil {
		err = c.describe(fd, &st, path)
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		closeFD(fd)
		return err
	}
	c.push(fd, stateOf(&st).inode)
	if err := c.directory(path, stateOf(&st)); err != nil {
		return err
	}
	return c.pop(path)
}

// describe adds one entry without what is below it.
func (c *capture) describe(fd int, st *unix.Stat_t, path string) error {
	before := stateOf(st)
	several := st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR
	if first, ok := c.seen[before.inode]; ok && several {
		if first.state != before {
			return fail(path, "compare", errChanged)
		}
		e := c.entries[first.index]
		e.Path = path
		e.Links.Paths = append(e.Links.Paths, path)
		c.entries = append(c.entries, e)
		return nil
	}
	e, err := c.newEntry(fd, st, path)
	if err != nil {
		return err
	}
	if err := unchanged(fd, path, before); err != nil {
		return err
	}
	if several {
		e.Links = &LinkGroup{Count: uint64(st.Nlink), Paths: []string{path}}
		c.seen[before.inode] = inodeEntry{index: len(c.entries), state: before}
	}
	c.entries = append(c.entries, e)
	return nil
}

func (c *capture) newEntry(fd int, st *unix.Stat_t, path string) (Entry, error) {
	e := Entry{
		Path: path, Type: kindOf(st.Mode), Mode: st.Mode &^ unix.S_IFMT, UID: st.Uid, GID: st.Gid,
		Mtime: Time{Sec: int64(st.Mtim.Sec), Nsec: int64(st.Mtim.Nsec)},
	}
	var err error
	switch e.Type {
	case Regular:
		e.Size, e.Allocated = st.Size, st.Blocks*512
		e.Digest, e.Data, err = c.content(fd, st.Size)
	case Symlink:
		e.Target, err = readlink(fd, st.Size)
	case CharDevice, BlockDevice:
		e.Major, e.Minor = unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
	case Directory, FIFO, Socket:
	}
	if err != nil {
		return Entry{}, fail(path, "read", err)
	}
	if e.Xattrs, err = xattrs(fd); err != nil {
		return Entry{}, fail(path, "read extended attributes", err)
	}
	return e, nil
}

// directory describes the entries of the directory on top of c.levels.
func (c *capture) directory(path string, before state) error {
	names, err := readNames(c.top())
	if err != nil {
		return fail(path, "list", err)
	}
	slices.Sort(names)
	for _, name := range names {
		below := name
		if path != "." {
			below = path + "/" + name
		}
		if err := c.entry(c.top(), name, below); err != nil {
			return err
		}
	}
	return unchanged(c.top(), path, before)
}

func (c *capture) top() int { return c.levels[len(c.levels)-1].fd }

// push makes a directory the current one. It closes the one maxOpen levels above,
// so that a deep tree does not use up the descriptors.
func (c *capture) push(fd int, id inode) {
	c.levels = append(c.levels, level{fd: fd, inode: id})
	if above := len(c.levels) - 1 - maxOpen; above >= 0 {
		closeFD(c.levels[above].fd)
		c.levels[above].fd = -1
	}
}

// pop leaves the current directory, and opens the one above again if push closed
// it.
func (c *capture) pop(path string) error {
	last := len(c.levels) - 1
	if last > 0 && c.levels[last-1].fd < 0 {
		fd, err := open(c.levels[last].fd, "..", unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return fail(path, "open the parent of", err)
		}
		c.levels[last-1].fd = fd
		if st, err := stat(fd); err != nil || stateOf(&st).inode != c.levels[last-1].inode {
			return fail(path, "open the parent of", errors.Join(err, errChanged))
		}
	}
	closeFD(c.levels[last].fd)
	c.levels = c.levels[:last]
	return nil
}

// unchanged returns an error if the inode is not in the state from before.
func unchanged(fd int, path string, before state) error {
	st, err := stat(fd)
	if err == nil && stateOf(&st) != before {
		err = errChanged
	}
	if err != nil {
		return fail(path, "compare", err)
	}
	return nil
}

func stateOf(st *unix.Stat_t) state {
	return state{
		inode: inode{dev: uint64(st.Dev), ino: st.Ino}, mode: st.Mode, uid: st.Uid, gid: st.Gid,
		nlink: uint64(st.Nlink), size: st.Size, mtime: st.Mtim, ctime: st.Ctim,
	}
}

func kindOf(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Symlink
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	case unix.S_IFCHR:
		return CharDevice
	default:
		return BlockDevice // the kernel has no other
	}
}

func fail(path, action string, err error) error {
	return fmt.Errorf("treecheck: %s %q: %w", action, path, err)
}
