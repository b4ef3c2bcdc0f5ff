package files

import (
	"bytes"
	"encoding/binary"
	"io/fs"

	"github.com/remit-dev/remit/internal/disk"
)

// The tags of the entries of an access control list.
const (
	aclOwner = 0x01
	aclUser  = 0x02
	aclGroup = 0x04
	aclMask  = 0x10
	aclOther = 0x20
)

// aclVersion is the version of every list that Linux stores.
const aclVersion = 2

// aclEntry is one entry of an access control list.
type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// parseACL parses a list as the kernel stores it. It returns nil for invalid
// data.
func parseACL(raw []byte) []aclEntry {
	if len(raw) < 4 || len(raw)%8 != 4 || binary.LittleEndian.Uint32(raw) != aclVersion {
		return nil
	}
	var all []aclEntry
	for raw = raw[4:]; len(raw) > 0; raw = raw[8:] {
		all = append(all, aclEntry{
			tag: binary.LittleEndian.Uint16(raw), perm: binary.LittleEndian.Uint16(raw[2:]), id: binary.LittleEndian.Uint32(raw[4:]),
		})
	}
	return all
}

func encodeACL(all []aclEntry) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range all {
		raw = binary.LittleEndian.AppendUint16(raw, e.tag)
		raw = binary.LittleEndian.AppendUint16(raw, e.perm)
		raw = binary.LittleEndian.AppendUint32(raw, e.id)
	}
	return raw
}

// classes finds the entries that are also permission bits: those of the owner,
// of all others, and of the mask or, without a mask, the group.
func classes(all []aclEntry) (owner, group, other *aclEntry) {
	for i := range all {
		switch e := &all[i]; {
		case e.tag == aclOwner:
			owner = e
		case e.tag == aclMask, e.tag == aclGroup && group == nil:
			group = e
		case e.tag == aclOther:
			other = e
		}
	}
	return owner, group, other
}

// withBits returns the list after a chmod.
func withBits(raw []byte, bits fs.FileMode) []byte {
	all := parseACL(raw)
	owner, group, other := classes(all)
	if owner == nil || group == nil || other == nil {
		return raw
	}
	owner.perm, group.perm, other.perm = uint16(bits>>6&7), uint16(bits>>3&7), uint16(bits&7)
	return encodeACL(all)
}

// inherited returns the list and the bits that a new file gets from the default
// list of its folder. The list is nil if the bits express it fully. The bits
// are the requested ones, without those that the list denies a group or others.
// The owner gets the requested bits.
func inherited(raw []byte, bits fs.FileMode) ([]byte, fs.FileMode) {
	all := parseACL(raw)
	owner, group, other := classes(all)
	if owner == nil || group == nil || other == nil {
		return nil, bits
	}
	owner.perm = uint16(bits >> 6 & 7)
	group.perm &= uint16(bits >> 3 & 7)
	other.perm &= uint16(bits & 7)
	bits = bits&^0o077 | fs.FileMode(group.perm)<<3 | fs.FileMode(other.perm)
	if len(all) == 3 {
		return nil, bits
	}
	return encodeACL(all), bits
}

// rebit returns the version with other permission bits, as chmod does.
func (v Version) rebit(bits fs.FileMode) Version {
	v.Perm = bits
	if acl, ok := v.Xattrs[disk.XattrAccess]; ok {
		v.Xattrs = with(v.Xattrs, disk.XattrAccess, withBits(acl, bits))
	}
	return v
}

// asProgram are the bits that determine as whom a file runs.
const asProgram = fs.ModeSetuid | fs.ModeSetgid

// unprivileged removes what lets a version run with more rights. Content that
// another program chose must not inherit these. The kernel does the same on a
// write.
func (v Version) unprivileged() Version {
	v.Perm &^= asProgram
	if _, ok := v.Xattrs[disk.XattrCapability]; ok {
		v.Xattrs = with(v.Xattrs, disk.XattrCapability, nil)
	}
	return v
}

// with returns a copy of attributes with one value changed; nil removes it.
func with(xattrs map[string][]byte, key string, value []byte) map[string][]byte {
	out := make(map[string][]byte, len(xattrs)+1)
	for k, v := range xattrs {
		if k != key {
			out[k] = v
		}
	}
	if value != nil {
		out[key] = value
	}
	return out
}

// hidden reports whether a program in a sandbox cannot set the attribute; it
// also cannot see some of them. So their absence in its result means nothing.
func hidden(key string) bool { return key != disk.XattrCapability && !(disk.Self{}).Sets(key) }

// retaining adds the attributes of the replaced file that the program could not
// have changed. The file keeps setuid, setgid and capabilities if the program
// kept them, its content and its owner.
func (img fileImage) retaining(was Version) Version {
	v := img.Version
	if was.Type != v.Type || !img.again {
		return v
	}
	for key, value := range was.Xattrs {
		if _, has := v.Xattrs[key]; !has && hidden(key) {
			v.Xattrs = with(v.Xattrs, key, value)
		}
	}
	if v.Type != typeFile || v.Content != was.Content || v.Owner != was.Owner {
		return v
	}
	v.Perm |= was.Perm & img.left.Perm & asProgram
	if value, had := was.Xattrs[disk.XattrCapability]; had && bytes.Equal(value, img.left.Xattrs[disk.XattrCapability]) {
		v.Xattrs = with(v.Xattrs, disk.XattrCapability, value)
	}
	return v
}
