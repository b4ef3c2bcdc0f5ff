package files

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// Version identifies the state of a file. The zero Version is that of an absent
// file.
type Version struct {
	Type    string            // file, dir, link or other
	Perm    fs.FileMode       // permission bits with setuid, setgid and sticky; links have none
	Content string            // digest of the bytes of a file, see canon.Hash
	Target  string            // target of a link, raw bytes
	Xattrs  map[string][]byte // extended attributes under their full names, including access control lists
	Owner   Owner             // user and group; unknown if the system has none
}

// Owner is the user and the group of a file. The zero Owner is unknown.
type Owner struct {
	Known       bool
	User, Group uint32
}

// String returns both numbers in decimal, separated by a colon, or "" if they
// are unknown.
func (o Owner) String() string { return disk.Owner(o).String() }

// Token returns the version's token: effect.Absent for the zero Version, else
//
//	Sum("remit/file-token/v1", document)
//
// over a canonical JSON document with these members, without those that do not
// apply:
//
//	content  digest of the bytes, sha256:…; files only
//	owner    user and group, two decimal numbers with a colon between them
//	perm     the twelve permission bits in four octal digits; not for links
//	target   base64 of the link target; links only
//	type     file, dir, link or other
//	xattrs   pairs of base64 name and base64 value, sorted by the bytes of the
//	         names, those of disk.CheckXattr; omitted if there are none
//
// The time of the last change is not part of it. A revert restores the time,
// but a file whose time changed is not another version.
func (v Version) Token() effect.Token {
	if v.Type == "" {
		return effect.Absent
	}
	doc := tokenDoc{Type: v.Type, Owner: v.Owner.String()}
	switch v.Type {
	case typeLink:
		doc.Target = base64.StdEncoding.EncodeToString([]byte(v.Target))
	case typeFile:
		doc.Content = v.Content
		doc.Perm, doc.Xattrs = octal(v.Perm), pairs(v.Xattrs)
	default:
		doc.Perm, doc.Xattrs = octal(v.Perm), pairs(v.Xattrs)
	}
	raw, err := canon.Marshal(doc)
	if err != nil {
		return "" // more attributes than a document can hold: unknown, equal to nothing
	}
	return effect.Token(canon.Sum("remit/file-token/v1", raw))
}

type tokenDoc struct {
	Type    string      `json:"type"`
	Owner   string      `json:"owner,omitempty"`
	Perm    string      `json:"perm,omitempty"`
	Content string      `json:"content,omitempty"`
	Target  string      `json:"target,omitempty"`
	Xattrs  [][2]string `json:"xattrs,omitempty"`
}

// The types, as disk spells them.
const (
	typeFile = "file"
	typeDir  = "dir"
	typeLink = "link"
)

func sorted(xattrs map[string][]byte) []string { return slices.Sorted(maps.Keys(xattrs)) }

func pairs(xattrs map[string][]byte) [][2]string {
	var out [][2]string
	for _, name := range sorted(xattrs) {
		out = append(out, [2]string{
			base64.StdEncoding.EncodeToString([]byte(name)),
			base64.StdEncoding.EncodeToString(xattrs[name]),
		})
	}
	return out
}

func unpair(in [][2]string) (map[string][]byte, error) {
	out := make(map[string][]byte, len(in))
	for _, p := range in {
		name, err := base64.StdEncoding.DecodeString(p[0])
		if err != nil {
			return nil, fmt.Errorf("attribute name: %w", err)
		}
		if out[string(name)], err = base64.StdEncoding.DecodeString(p[1]); err != nil {
			return nil, fmt.Errorf("attribute value: %w", err)
		}
	}
	if !slices.Equal(pairs(out), in) {
		return nil, errors.New("attributes that are not written as they are: each once, in order, in base64")
	}
	return out, nil
}

// special returns the bits that fs.FileMode and octal notation encode
// differently.
func special() []struct{ mode, unix fs.FileMode } {
	return []struct{ mode, unix fs.FileMode }{
		{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000},
	}
}

func octal(perm fs.FileMode) string {
	bits := perm & fs.ModePerm
	for _, s := range special() {
		if perm&s.mode != 0 {
			bits |= s.unix
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}

func parseOctal(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 12)
	if err != nil || len(text) != 4 {
		return 0, fmt.Errorf("permission bits %q are not four octal digits", text)
	}
	perm := fs.FileMode(n) & fs.ModePerm
	for _, s := range special() {
		if fs.FileMode(n)&s.unix != 0 {
			perm |= s.mode
		}
	}
	return perm, nil
}

// state is a version with further data for a revert.
type state struct {
	Version
	info disk.Info
}

func (s state) exists() bool { return s.Type != "" }

// same reports whether both are one inode.
func (s state) same(info disk.Info) bool {
	return s.exists() && s.info.Inode == info.Inode && s.info.Device == info.Device
}
