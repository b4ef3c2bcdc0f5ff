//go:build linux

package randprog

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// attributes returns the operations on bits, owners, times and attributes.
func attributes() []operation {
	return []operation{
		{name: "chmod", weight: 7, run: (*actor).chmod},
		{name: "chgrp", weight: 4, run: (*actor).chgrp},
		{name: "chown", weight: 3, setup: true, run: (*actor).chown},
		{name: "time", weight: 6, run: (*actor).touch},
		{name: "attribute", weight: 5, run: (*actor).setAttribute},
		{name: "drop attribute", weight: 2, run: (*actor).dropAttribute},
		{name: "acl", weight: 5, run: (*actor).acl},
		{name: "default acl", weight: 2, run: (*actor).defaultACL},
		{name: "drop acl", weight: 1, run: (*actor).dropACL},
		{name: "capability", weight: 2, setup: true, run: (*actor).capability},
		{name: "trusted attribute", weight: 1, setup: true, run: (*actor).trusted},
	}
}

func (a *actor) chmod() (string, error) {
	bits := []uint32{0o644, 0o600, 0o755, 0o700, 0o640, 0o444, 0o4755, 0o2755, 0o1755, 0o664, 0o711}[a.random.IntN(11)]
	if a.random.IntN(4) == 0 {
		name, err := a.folder()
		if err != nil {
			return "", err
		}
		bits |= 0o700 // a folder that its owner cannot use ends the program, not the proof
		return fmt.Sprintf("%q %04o", name, bits), unix.Chmod(name, bits)
	}
	name, err := a.any(a.files)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q %04o", name, bits), unix.Chmod(name, bits)
}

func (a *actor) chgrp() (string, error) {
	name, err := a.entry()
	if err != nil || len(a.Groups) == 0 {
		return "", errNothing
	}
	group := a.Groups[a.random.IntN(len(a.Groups))]
	return fmt.Sprintf("%q %d", name, group), os.Lchown(name, -1, group)
}

func (a *actor) chown() (string, error) {
	name, err := a.entry()
	owner := []int{0, 1, 33, 65534}[a.random.IntN(4)]
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q %d", name, owner), os.Lchown(name, owner, owner)
}

func (a *actor) touch() (string, error) {
	name, err := a.entry()
	at := a.time()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q %d.%09d", name, at.Sec, at.Nsec),
		unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

func (a *actor) attributed() (string, error) {
	if a.random.IntN(3) == 0 {
		return a.folder()
	}
	return a.any(a.files)
}

func (a *actor) setAttribute() (string, error) {
	name, err := a.attributed()
	key := []string{"user.k", "user.comment", "user.mime_type", "user.Ünï"}[a.random.IntN(4)]
	value := [][]byte{{}, []byte("v"), []byte("\x00\xff\n"), make([]byte, 900)}[a.random.IntN(4)]
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q %s %d bytes", name, key, len(value)), unix.Lsetxattr(name, key, value, 0)
}

func (a *actor) dropAttribute() (string, error) {
	name, err := a.attributed()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q", name), unix.Lremovexattr(name, "user.k")
}

// Tags and layout of an ACL as the kernel stores it: posix_acl_xattr.h of
// Linux.
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

// ACL returns the extended attribute of an ACL that names one user and one group.
func ACL(owner, user, group, mask, other uint16) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, bits uint16
		id        uint32
	}{
		{aclUserObj, owner, 0xffffffff},
		{aclUser, user, 1},
		{aclGroupObj, group, 0xffffffff},
		{aclGroup, group, 2},
		{aclMask, mask, 0xffffffff},
		{aclOther, other, 0xffffffff},
	} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.bits)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}
	return out
}

func (a *actor) bits3() uint16 { return uint16(a.random.IntN(8)) }

func (a *actor) acl() (string, error) {
	name, err := a.attributed()
	value := ACL(6|a.bits3(), a.bits3(), a.bits3(), a.bits3(), a.bits3()&5)
	if err != nil {
		return "", err
	}
	var is unix.Stat_t
	if err := unix.Lstat(name, &is); err == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR {
		value = ACL(7, a.bits3(), a.bits3(), a.bits3(), a.bits3()&5)
	}
	return fmt.Sprintf("%q %x", name, value[4:]), unix.Lsetxattr(name, "system.posix_acl_access", value, 0)
}

func (a *actor) defaultACL() (string, error) {
	name, err := a.folder()
	value := ACL(7, a.bits3(), a.bits3(), 7, a.bits3()&5)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q", name), unix.Lsetxattr(name, "system.posix_acl_default", value, 0)
}

func (a *actor) dropACL() (string, error) {
	name, err := a.attributed()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q", name), unix.Lremovexattr(name, "system.posix_acl_access")
}

// capability gives a file one of the kernel's file capabilities, version 2: capability.h of Linux.
func (a *actor) capability() (string, error) {
	name, err := a.any(a.files)
	if err != nil {
		return "", err
	}
	value := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	value = binary.LittleEndian.AppendUint32(value, 1<<unix.CAP_NET_BIND_SERVICE)
	value = append(value, make([]byte, 12)...)
	return fmt.Sprintf("%q", name), unix.Lsetxattr(name, "security.capability", value, 0)
}

func (a *actor) trusted() (string, error) {
	name, err := a.attributed()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q", name), unix.Lsetxattr(name, "trusted.note", []byte("kept"), 0)
}
