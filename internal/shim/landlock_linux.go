//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
)

// Landlock rights, by what the program may do with a folder or file.
const (
	llRead  = landlockAccessFSExecute | landlockAccessFSReadFile | landlockAccessFSReadDir
	llWrite = landlockAccessFSWriteFile | landlockAccessFSRemoveDir | landlockAccessFSRemoveFile |
		landlockAccessFSMakeDir | landlockAccessFSMakeReg | landlockAccessFSMakeSock |
		landlockAccessFSMakeFifo | landlockAccessFSMakeSym
	llNode = landlockAccessFSMakeChar | landlockAccessFSMakeBlock // granted nowhere
	llFile = landlockAccessFSWriteFile | landlockAccessFSReadFile
)

// enoughLandlock is the first version that bounds files, truncation, TCP,
// device controls, abstract sockets and signals.
const enoughLandlock = 6

// rules are the Landlock rules for this thread, ready to be enforced.
type rules struct {
	fd  int
	err error
}

func (r rules) close() {
	if r.err == nil {
		_ = syscall.Close(r.fd)
	}
}

// shortcoming returns what a version lacks, or nil if it suffices.
func shortcoming(version int) error {
	switch {
	case version <= 0:
		return errors.New("this kernel has none")
	case version < enoughLandlock:
		return errors.New("version " + strconv.Itoa(version) + "; from " + strconv.Itoa(enoughLandlock) + " on it bounds all that it should")
	}
	return nil
}

// handled returns everything that this kernel's Landlock can refuse. It refuses
// all that no rule allows.
func handled(version int, network bool) landlockRulesetAttr {
	a := landlockRulesetAttr{handledFS: llRead | llWrite | llNode}
	if version >= 2 {
		a.handledFS |= landlockAccessFSRefer
	}
	if version >= 3 {
		a.handledFS |= landlockAccessFSTruncate
	}
	if version >= 4 && !network {
		a.handledNet = landlockAccessNetBindTCP | landlockAccessNetConnectTCP
	}
	if version >= 5 {
		a.handledFS |= landlockAccessFSIOCTLDev
	}
	if version >= 6 {
		a.scoped = landlockScopeAbstractUnixSocket | landlockScopeSignal
	}
	return a
}

// rules prepares Landlock. It allows reading and running everything in the
// sandbox, and writing only to the writable places. It repeats the restrictions
// of the mounts by another mechanism.
func (s *sandboxBuild) rules() rules {
	s.landlock = landlockVersion()
	why := shortcoming(s.landlock)
	if s.landlock == 0 {
		return rules{err: why}
	}
	if why != nil {
		s.lack("landlock", why)
	}
	// Only the sandbox itself responds on its own network.
	attr := handled(s.landlock, s.Network || s.loopback)
	fd, err := landlockCreateRuleset(&attr)
	if err != nil {
		return rules{err: err}
	}
	r := rules{fd: fd}
	write := llRead | llWrite | attr.handledFS&(landlockAccessFSRefer|landlockAccessFSTruncate)
	file := llFile | attr.handledFS&(landlockAccessFSTruncate|landlockAccessFSIOCTLDev)
	for _, p := range s.reachable(write, file) {
		if r.err = allow(r.fd, p); r.err != nil {
			_ = syscall.Close(r.fd)
			return r
		}
	}
	return r
}

// place is a path with the program's rights there.
type place struct {
	path   string
	access uint64
	maybe  bool // the path may be missing
}

// reachable returns each place of the sandbox, with the rights there.
func (s *sandboxBuild) reachable(write, file uint64) (all []place) {
	if s.Namespaces {
		all = []place{{"/", llRead, false}, {"/dev/shm", write, false}, {"/tmp", write, false}, {"/var/tmp", write, false}}
	} else {
		for _, path := range s.System {
			all = append(all, place{path, llRead, true})
		}
		all = append(all, place{s.Scratch, write, false})
	}
	if s.Namespaces && s.Home != "" {
		all = append(all, place{s.Home, write, false})
	}
	for _, dev := range devices() {
		all = append(all, place{"/dev/" + dev, file, false})
	}
	if s.Terminal > 0 {
		all = append(all, place{"/dev/tty", file, false})
	}
	if s.pts {
		all = append(all, place{"/dev/pts", llRead | file, false})
	}
	for i, r := range s.Roots {
		path, access := r.Dir, uint64(llRead)
		if r.View != Read {
			access = write
		}
		if !s.Namespaces {
			path = "/proc/self/fd/" + strconv.Itoa(s.folders[i]) // the one that was checked
		}
		all = append(all, place{path, access, false})
	}
	return all
}

func allow(ruleset int, p place) error {
	fd, err := syscall.Open(p.path, oPath|syscall.O_CLOEXEC, 0)
	if errors.Is(err, syscall.ENOENT) && p.maybe {
		return nil
	}
	if err != nil {
		return failedAt(p.path, err)
	}
	defer func() { _ = syscall.Close(fd) }()
	rule := landlockPathBeneathAttr{allowed: p.access, parent: int32(fd)} //nolint:gosec // a descriptor
	if p.maybe {                                                          // a folder or a file
		var is syscall.Stat_t
		if syscall.Fstat(fd, &is) == nil && is.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			rule.allowed &^= landlockAccessFSReadDir
		}
	}
	if err := landlockAddRule(ruleset, &rule); err != nil {
		return failedAt(p.path, err)
	}
	return nil
}

// enforce applies the rules to this thread and its later children.
func (r rules) enforce() error {
	if r.err != nil {
		return r.err
	}
	return landlockRestrictSelf(r.fd)
}
