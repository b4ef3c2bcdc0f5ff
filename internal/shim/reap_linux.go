//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
)

// reap waits for the program, kills its remaining processes, and waits for
// those. Afterwards no process can write.
func (s *sandboxBuild) reap(pid int) Exit {
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

// killRest kills all remaining processes, and counts them.
func killRest() (left int) {
	for {
		if syscall.Getpid() == 1 {
			_ = syscall.Kill(-1, syscall.SIGKILL) // everything but this process, in this namespace
		} else {
			killBelow() // without its own namespace, -1 would be the whole machine
		}
		for flags := 0; ; flags = syscall.WNOHANG { // a killed process can leave children: these are killed next
			var status syscall.WaitStatus
			got, err := syscall.Wait4(-1, &status, flags, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil {
				return left
			}
			if got == 0 {
				break
			}
			if status.Signaled() && status.Signal() == syscall.SIGKILL { // else it ended by itself meanwhile
				left++
			}
		}
	}
}

// killBelow kills the children of this process. Only this process could release
// their numbers, so no number can be reused meanwhile. Their children become
// children of this process.
func killBelow() {
	self := strconv.Itoa(syscall.Getpid())
	dir, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	names := namesIn(dir)
	_ = syscall.Close(dir)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && parentOf(name) == self {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// parentOf returns the number of a process's parent, or "".
func parentOf(pid string) string {
	text, err := readText("/proc/"+pid+"/stat", 4096)
	if err != nil {
		return ""
	}
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == ')' { // the name before it can contain anything
			text = text[i+1:]
			break
		}
	}
	_, fields, _ := cut(string(text), ' ')
	_, fields, _ = cut(fields, ' ') // the state
	parent, _, _ := cut(fields, ' ')
	return parent
}

// unlock gives an ordinary user the right to read the entries of its program in
// the upper folders. Outside it has no capability for that. No other process
// runs that could interfere.
func (s *sandboxBuild) unlock() (all []UnreadableEntry) {
	if syscall.Getuid() == 0 {
		return nil
	}
	for i, upper := range s.uppers {
		unlockBelow(upper, ".", ".", func(name string, mode uint32) {
			all = append(all, UnreadableEntry{Upper: i, Name: name, Mode: mode})
		})
	}
	return all
}

// unlockBelow walks a name of a folder. For an unreadable name, the parent
// returns the error with the whole path.
func unlockBelow(folder int, at, whole string, changed func(name string, mode uint32)) {
	var is syscall.Stat_t
	if fstatat(folder, at, &is) != nil {
		return
	}
	need := uint32(0o400)
	switch is.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
	case syscall.S_IFDIR:
		need = 0o500
	default:
		return
	}
	if is.Mode&need != need && syscall.Fchmodat(folder, at, is.Mode&0o7777|need, 0) == nil {
		changed(whole, is.Mode&0o7777)
	}
	if need != 0o500 {
		return
	}
	fd, err := syscall.Openat(folder, at, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = syscall.Close(fd) }()
	for _, name := range namesIn(fd) {
		below := name
		if whole != "." {
			below = whole + "/" + name
		}
		unlockBelow(fd, name, below, changed)
	}
}
