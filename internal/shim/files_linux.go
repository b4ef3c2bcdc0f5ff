//go:build amd64 || arm64

package shim

import (
	"errors"
	"strconv"
	"syscall"
	"unsafe"
)

// renameAt renames a name in one folder to a name in another.
func renameAt(from int, old string, to int, name string, flags uint64) error {
	a, err := syscall.BytePtrFromString(old)
	if err != nil {
		return err
	}
	b, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysRenameat2, uintptr(from), uintptr(unsafe.Pointer(a)),
		uintptr(to), uintptr(unsafe.Pointer(b)), uintptr(flags), 0)
	return failed(errno)
}

// removeFolder removes an empty folder.
func removeFolder(folder int, name string) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_UNLINKAT, uintptr(folder), uintptr(unsafe.Pointer(p)), atRemovedir)
	return failed(errno)
}

// mountOf returns the mount ID of an open file.
func mountOf(fd int) (uint64, error) {
	var is [32]uint64 // struct statx: its mask is first, the mount at byte 144
	empty := [1]byte{}
	_, _, errno := syscall.Syscall6(sysStatx, uintptr(fd), uintptr(unsafe.Pointer(&empty)), atEmptyPath, statxMntID,
		uintptr(unsafe.Pointer(&is)), 0)
	if errno == 0 && is[0]&statxMntID == 0 {
		errno = syscall.ENOSYS
	}
	return is[144/8], failed(errno)
}

// readMemory reads another process's memory up to the first NUL, without the
// NUL.
func readMemory(pid int, at uint64) (string, error) {
	const page, longest = 4096, 4096
	var text []byte
	for len(text) < longest {
		buf := make([]byte, page-at%page) // the memory after the text can be unreadable
		n, err := vmRead(pid, at, buf)
		if err != nil {
			return "", err
		}
		for i, c := range buf[:n] {
			if c == 0 {
				return string(append(text, buf[:i]...)), nil
			}
		}
		if n < len(buf) {
			return "", syscall.EFAULT
		}
		text, at = append(text, buf...), at+uint64(n) //nolint:gosec // at most a page
	}
	return "", syscall.ENAMETOOLONG
}

func vmRead(pid int, at uint64, buf []byte) (int, error) {
	here := [2]uintptr{uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf))} // struct iovec
	there := [2]uintptr{uintptr(at), uintptr(len(buf))}
	n, _, errno := syscall.Syscall6(sysProcessVMReadv, uintptr(pid), uintptr(unsafe.Pointer(&here)), 1,
		uintptr(unsafe.Pointer(&there)), 1, 0)
	return int(n), failed(errno)
}

// pathOf returns the path of an open file.
func pathOf(fd int) (string, error) { return readLink("/proc/self/fd/" + strconv.Itoa(fd)) }

func readLink(path string) (string, error) {
	buf := make([]byte, 4097)
	n, err := syscall.Readlink(path, buf)
	if err == nil && n == len(buf) {
		err = syscall.ENAMETOOLONG
	}
	return string(buf[:max(n, 0)]), err
}

// copyMetadata sets the owner, bits, attributes and times of a folder to those of
// another one, described by is.
func copyMetadata(from, to int, is syscall.Stat_t) error {
	if err := sameAttributes(from, to); err != nil {
		return err
	}
	var now syscall.Stat_t
	if err := syscall.Fstat(to, &now); err != nil {
		return err
	}
	if now.Uid != is.Uid || now.Gid != is.Gid {
		if err := syscall.Fchown(to, int(is.Uid), int(is.Gid)); err != nil {
			return err
		}
	}
	if err := syscall.Fchmod(to, is.Mode&0o7777); err != nil {
		return err
	}
	return timesOf(to, is)
}

// timesOf sets the times of an open folder.
func timesOf(fd int, is syscall.Stat_t) error {
	times := [2]syscall.Timespec{is.Atim, is.Mtim}
	_, _, errno := syscall.Syscall6(syscall.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	return failed(errno)
}

// sameAttributes sets the extended attributes of a folder to exactly those of
// another one. A new folder inherits some from its parent.
func sameAttributes(from, to int) error {
	want, err := attributesOf(from)
	if err != nil {
		return err
	}
	had, err := attributesOf(to)
	if err != nil {
		return err
	}
	for _, name := range had {
		if !contains(want, name) {
			if err := attribute(syscall.SYS_FREMOVEXATTR, to, name, nil, nil); err != nil {
				return err
			}
		}
	}
	for _, name := range want {
		value := make([]byte, 64<<10) // no attribute is longer
		n := uintptr(0)
		if err := attribute(syscall.SYS_FGETXATTR, from, name, value, &n); err != nil {
			return err
		}
		if err := attribute(syscall.SYS_FSETXATTR, to, name, value[:n], nil); err != nil {
			return err
		}
	}
	return nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// attribute makes a system call for one attribute.
func attribute(call uintptr, fd int, name string, value []byte, size *uintptr) error {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return err
	}
	at := unsafe.Pointer(nil)
	if len(value) > 0 {
		at = unsafe.Pointer(&value[0])
	}
	n, _, errno := syscall.Syscall6(call, uintptr(fd), uintptr(unsafe.Pointer(p)), uintptr(at), uintptr(len(value)), 0, 0)
	if errno == 0 && size != nil {
		*size = n
	}
	return failed(errno)
}

// attributesOf returns the names of the attributes of an open folder.
func attributesOf(fd int) (names []string, err error) {
	buf := make([]byte, 64<<10) // the kernel's maximum
	n, _, errno := syscall.Syscall(syscall.SYS_FLISTXATTR, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if errors.Is(errno, syscall.ENOTSUP) {
		return nil, nil
	}
	if errno != 0 {
		return nil, errno
	}
	for rest := string(buf[:n]); rest != ""; {
		name, after, _ := cut(rest, 0)
		names, rest = append(names, name), after
	}
	return names, nil
}
