package hook

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/windows"
)

// peerPID is SIO_AF_UNIX_GETPEERPID.
const peerPID = 0x58000100

// peer returns the process at the other end, which belongs to this user. If
// that cannot be known, it is not served.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var id, n uint32
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = windows.WSAIoctl(windows.Handle(fd), peerPID, nil, 0, (*byte)(unsafe.Pointer(&id)), uint32(unsafe.Sizeof(id)), &n, nil, 0)
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("the process that asks is unknown: %w", err)
	}
	if err := sameUser(id); err != nil {
		return 0, fmt.Errorf("process %d is not served: %w", id, err)
	}
	return int(id), nil
}

// sameUser returns an error if a process does not belong to this user, or if
// that is unknown.
func sameUser(pid uint32) error {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return fmt.Errorf("its user is unknown: %w", err)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var token windows.Token
	if err := windows.OpenProcessToken(h, windows.TOKEN_QUERY, &token); err != nil {
		return fmt.Errorf("its user is unknown: %w", err)
	}
	defer func() { _ = token.Close() }()
	theirs, err := token.GetTokenUser()
	if err != nil {
		return fmt.Errorf("its user is unknown: %w", err)
	}
	mine, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("this user is unknown: %w", err)
	}
	if !theirs.User.Sid.Equals(mine.User.Sid) {
		return errors.New("it belongs to another user")
	}
	return nil
}
