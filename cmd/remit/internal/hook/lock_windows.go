package hook

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tryLock locks a file until it is closed or its process ends.
func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errRunning
	}
	return err
}

// private refuses a folder that others can use: they could put a socket of
// theirs in it. The bits of a mode mean nothing here, so the access control
// list decides.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s must be a folder", dir)
	}
	if err := onlyThisUser(dir); err != nil {
		return fmt.Errorf("%s: %w; it must be open to this user alone", dir, err)
	}
	return nil
}

// onlyThisUser returns an error if others than this user and the system can
// use a folder, or if that is unknown.
func onlyThisUser(dir string) error {
	sd, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("its rights are unknown: %w", err)
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("this user is unknown: %w", err)
	}
	mine := func(sid *windows.SID) bool {
		return sid.Equals(user.User.Sid) || sid.IsWellKnown(windows.WinLocalSystemSid) || sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) ||
			sid.IsWellKnown(windows.WinCreatorOwnerSid) || sid.IsWellKnown(windows.WinCreatorOwnerRightsSid)
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("its owner is unknown: %w", err)
	}
	if !mine(owner) {
		return errors.New("it belongs to another user")
	}
	list, _, err := sd.DACL()
	if err != nil {
		return fmt.Errorf("its rights are unknown: %w", err)
	}
	if list == nil {
		return errors.New("everybody can use it")
	}
	for i := range uint32(list.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &ace); err != nil {
			return fmt.Errorf("its rights are unknown: %w", err)
		}
		switch ace.Header.AceType {
		case windows.ACCESS_DENIED_ACE_TYPE:
		case windows.ACCESS_ALLOWED_ACE_TYPE:
			if !mine((*windows.SID)(unsafe.Pointer(&ace.SidStart))) {
				return errors.New("others can use it")
			}
		default:
			return errors.New("its rights are unknown")
		}
	}
	return nil
}
