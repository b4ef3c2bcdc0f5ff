package treecheck

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// aclText returns the readable form of a POSIX ACL as the kernel stores it: a
// version, then entries of a tag, permission bits and an ID. It returns a quoted
// string if the value has another form.
func aclText(value string) string {
	raw := []byte(value)
	if len(raw) < 4 || len(raw)%8 != 4 || binary.LittleEndian.Uint32(raw) != 2 {
		return fmt.Sprintf("%q", value)
	}
	var entries []string
	for raw = raw[4:]; len(raw) > 0; raw = raw[8:] {
		tag, perm := binary.LittleEndian.Uint16(raw), binary.LittleEndian.Uint16(raw[2:])
		id := binary.LittleEndian.Uint32(raw[4:])
		entries = append(entries, aclTag(tag, id)+":"+aclPerm(perm))
	}
	return strings.Join(entries, ",")
}

func aclTag(tag uint16, id uint32) string {
	switch tag {
	case 0x01:
		return "user:"
	case 0x02:
		return fmt.Sprintf("user:%d", id)
	case 0x04:
		return "group:"
	case 0x08:
		return fmt.Sprintf("group:%d", id)
	case 0x10:
		return "mask:"
	case 0x20:
		return "other:"
	default:
		return fmt.Sprintf("tag %#x:%d", tag, id)
	}
}

func aclPerm(perm uint16) string {
	if perm > 7 {
		return fmt.Sprintf("%#x", perm)
	}
	text := []byte("rwx")
	for i, bit := range []uint16{4, 2, 1} {
		if perm&bit == 0 {
			text[i] = '-'
		}
	}
	return string(text)
}
