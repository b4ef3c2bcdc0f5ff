//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// reap waits for the program, kills everything that it left running, and waits
// for that too: afterwards nothing can write any more.
func reap(pid int) Exit {
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
			exit.Signal = status.Signal().String()
		}
		break
	}
	everything := -1 // but process 1, in this namespace
	if unix.Getpid() != 1 {
		everything = -pid // without a namespace of its own that would be the machine
	}
	for {
		_ = unix.Kill(everything, unix.SIGKILL)
		got, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exit
		case got > 0:
			exit.Left++
		}
	}
}

// unlock gives an ordinary user the right to read what its program left in the
// upper folders: outside it has no capability that would do. Nothing else runs any
// more that could come in between.
func (s *stage) unlock() (all []locked) {
	if os.Getuid() == 0 {
		return nil
	}
	for i, upper := range s.uppers {
		base := upperPath(upper)
		_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, _ error) error {
			if d == nil {
				return nil
			}
			info, err := d.Info()
			need := fs.FileMode(0o400)
			if d.IsDir() {
				need = 0o500
			}
			if err != nil || (!d.IsDir() && !info.Mode().IsRegular()) || info.Mode().Perm()&need == need {
				return nil // what cannot be looked at fails in Changes, with its name
			}
			var is unix.Stat_t
			if unix.Lstat(path, &is) != nil || unix.Chmod(path, is.Mode&0o7777|uint32(need)) != nil {
				return nil
			}
			name, _ := filepath.Rel(base, path)
			all = append(all, locked{Upper: i, Name: []byte(name), Mode: is.Mode & 0o7777})
			return nil
		})
	}
	return all
}

// upperPath is a path for an upper folder inside the finished sandbox, which no
// longer has the host's names.
func upperPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) + "/." }
