//go:build amd64 || arm64

package shim

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock, by what the program may do with a folder or file.
const (
	llRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	llWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	llNode = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK // granted nowhere
	llFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE
)

// enoughLandlock is the version from which on files, truncation, TCP, device
// controls, abstract sockets and signals are all bounded.
const enoughLandlock = 6

// rules are what Landlock will allow this thread, ready to be enforced.
type rules struct {
	fd  int
	err error
}

func (r rules) close() {
	if r.err == nil {
		_ = unix.Close(r.fd)
	}
}

// landlockVersion asks the kernel; 0 means that it has none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// shortcoming is what a version lacks; nil where it is enough.
func shortcoming(version int) error {
	switch {
	case version <= 0:
		return errors.New("this kernel has none")
	case version < enoughLandlock:
		return fmt.Errorf("version %d; from %d on it bounds all that it should", version, enoughLandlock)
	}
	return nil
}

// handled is everything that this kernel's Landlock can refuse, and so will,
// where no rule allows it.
func handled(version int, network bool) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: llRead | llWrite | llNode}
	if version >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 && !network {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// rules prepares Landlock: everything that the sandbox shows may be read and
// run, and only what is meant to be written may be. It repeats what the mounts
// say, on another mechanism.
func (s *stage) rules() rules {
	s.landlock = landlockVersion()
	why := shortcoming(s.landlock)
	if s.landlock == 0 {
		return rules{err: why}
	}
	if why != nil {
		s.lack("landlock", why)
	}
	attr := handled(s.landlock, s.Network)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return rules{err: errno}
	}
	r := rules{fd: int(fd)}
	write := llRead | llWrite | attr.Handled_access_fs&(unix.LANDLOCK_ACCESS_FS_REFER|unix.LANDLOCK_ACCESS_FS_TRUNCATE)
	file := llFile | attr.Handled_access_fs&(unix.LANDLOCK_ACCESS_FS_TRUNCATE|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	for _, p := range s.reachable(write, file) {
		if r.err = allow(r.fd, p); r.err != nil {
			_ = unix.Close(r.fd)
			return r
		}
	}
	return r
}

// place is somewhere that the program may do something.
type place struct {
	path   string
	access uint64
	maybe  bool // it need not be there
}

// reachable says for each place of the sandbox what may be done there.
func (s *stage) reachable(write, file uint64) (all []place) {
	if s.Namespaces {
		all = []place{{"/", llRead, false}, {"/dev/shm", write, false}, {"/tmp", write, false}, {"/var/tmp", write, false}}
	} else {
		for _, path := range s.System {
			all = append(all, place{path, llRead, true})
		}
		all = append(all, place{s.Scratch, write, false})
	}
	for _, dev := range devices() {
		all = append(all, place{"/dev/" + dev, file, false})
	}
	for i, r := range s.Roots {
		path, access := r.Dir, uint64(llRead)
		if r.View != Read {
			access = write
		}
		if !s.Namespaces {
			path = "/proc/self/fd/" + strconv.Itoa(s.folders[i]) // the one that was looked at
		}
		all = append(all, place{path, access, false})
	}
	return all
}

func allow(ruleset int, p place) error {
	fd, err := unix.Open(p.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && p.maybe {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: p.access, Parent_fd: int32(fd)} //nolint:gosec // a descriptor
	if p.maybe {                                                                         // a folder or a file
		var is unix.Stat_t
		if unix.Fstat(fd, &is) == nil && is.Mode&unix.S_IFMT != unix.S_IFDIR {
			rule.Allowed_access &^= unix.LANDLOCK_ACCESS_FS_READ_DIR
		}
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("%s: %w", p.path, errno)
	}
	return nil
}

// enforce puts the rules on this thread, and on what it starts.
func (r rules) enforce() error {
	if r.err != nil {
		return r.err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
