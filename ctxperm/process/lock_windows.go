package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// lock locks an open file until it is closed or its process ends.
func lock(f *os.File, wait bool) error {
	how := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
}

// isLocked reports whether somebody else holds the lock.
func isLocked(err error) bool { return errors.Is(err, windows.ERROR_LOCK_VIOLATION) }

// private refuses a folder of another user. The rights of others in it are
// those of the folder above, which the system gives to this user alone.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it must be a folder")
	}
	sd, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("its owner is unknown: %w", err)
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("its owner is unknown: %w", err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("this user is unknown: %w", err)
	}
	if !owner.Equals(user.User.Sid) && !owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return errors.New("the folder must belong to this user")
	}
	return nil
}
