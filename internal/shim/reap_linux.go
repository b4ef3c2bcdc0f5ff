//go:build amd64 || arm64

package shim

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// reap waits for the program, kills everything that it left running, and waits
// for that too: afterwards nothing can write any more.
func (s *stage) reap(pid int) Exit {
	exit := Exit{Code: -1}
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // no child: the program cannot have been one
			return exit
		case got != pid || (!status.Exited() && !status.Signaled()):
			continue // an orphan, or a stop
		}
		if status.Exited() {
			exit.Code = status.ExitStatus()
		} else {
			exit.Signal = int(status.Signal())
		}
		break
	}
	exit.Left = killRest()
	return exit
}

// killRest kills all that is left, and counts it.
func killRest() (left int) {
	for {
		if unix.Getpid() == 1 {
			_ = unix.Kill(-1, unix.SIGKILL) // everything but this process, in this namespace
		} else {
			killBelow() // without a namespace of its own that would be the machine
		}
		for flags := 0; ; flags = syscall.WNOHANG { // whoever is killed may leave children: these are killed next
			got, err := syscall.Wait4(-1, nil, flags, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil {
				return left
			}
			if got == 0 {
				break
			}
			left++
		}
	}
}

// killBelow kills the children of this process. Only this process could take
// their numbers back, so that none means somebody else meanwhile. What they leave
// becomes a child in turn.
func killBelow() {
	self := strconv.Itoa(unix.Getpid())
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && parentOf(name) == self {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// parentOf is the number of a process's parent, or nothing.
func parentOf(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	text = text[bytes.LastIndexByte(text, ')')+1:] // the name before it may hold anything
	if fields := bytes.Fields(text); len(fields) > 1 {
		return string(fields[1])
	}
	return ""
}

// unlock gives an ordinary user the right to read what its program left in the
// upper folders: outside it has no capability that would do. Nothing else runs any
// more that could come in between.
func (s *stage) unlock() (all []Locked) {
	if unix.Getuid() == 0 {
		return nil
	}
	for i, upper := range s.uppers {
		unlockBelow(upper, ".", ".", func(name string, mode uint32) {
			all = append(all, Locked{Upper: i, Name: name, Mode: mode})
		})
	}
	return all
}

// unlockBelow walks what lies at a name of a folder. What cannot be looked at
// fails where the parent looks at it, with its whole name.
func unlockBelow(folder int, at, whole string, changed func(name string, mode uint32)) {
	var is unix.Stat_t
	if unix.Fstatat(folder, at, &is, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	need := uint32(0o400)
	switch is.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		need = 0o500
	default:
		return
	}
	if is.Mode&need != need && unix.Fchmodat(folder, at, is.Mode&0o7777|need, 0) == nil {
		changed(whole, is.Mode&0o7777)
	}
	if need != 0o500 {
		return
	}
	fd, err := unix.Openat(folder, at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	dir := os.NewFile(uintptr(fd), whole)
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		below := name
		if whole != "." {
			below = whole + "/" + name
		}
		unlockBelow(fd, name, below, changed)
	}
}
