package pgtest

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged returns attributes for a process that must not be root, and that
// ends with this one. It gives the folder to that user.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	as := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		return as, nil
	}
	id := uint32(65534)
	if u, err := user.Lookup("postgres"); err == nil {
		n, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		id = uint32(n)
	}
	as.Credential = &syscall.Credential{Uid: id, Gid: id}
	return as, os.Chown(dir, int(id), int(id))
}
