package hook

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peer returns the process at the other end, which belongs to this user.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	var failed, unknown error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		pid, unknown = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err = errors.Join(err, failed, unknown); err != nil {
		return 0, err
	}
	if int(cred.Uid) != os.Getuid() {
		return 0, fmt.Errorf("a process of user %d is not served", cred.Uid)
	}
	return pid, nil
}
