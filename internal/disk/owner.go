package disk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Owner is the user and the group of a file. The zero Owner is unknown: some
// systems have none.
type Owner struct {
	Known       bool
	User, Group uint32
}

// String returns both numbers in decimal, separated by a colon, or "" if they
// are unknown.
func (o Owner) String() string {
	if !o.Known {
		return ""
	}
	return fmt.Sprintf("%d:%d", o.User, o.Group)
}

// ParseOwner parses the text of String, and nothing else.
func ParseOwner(text string) (Owner, error) {
	if text == "" {
		return Owner{}, nil
	}
	user, group, _ := strings.Cut(text, ":")
	u, err := strconv.ParseUint(user, 10, 32)
	if err != nil {
		return Owner{}, fmt.Errorf("owner %q: must be two numbers", text)
	}
	g, err := strconv.ParseUint(group, 10, 32)
	o := Owner{Known: true, User: uint32(u), Group: uint32(g)}
	if err != nil || o.String() != text {
		return Owner{}, fmt.Errorf("owner %q: must be two numbers", text)
	}
	return o, nil
}

// Self describes the owners and attributes that this process can set on its
// files.
type Self struct {
	Owner        Owner    // of a new file, unless its folder sets the folder's group
	Groups       []uint32 // further groups that it can set on its own files
	Gives        bool     // it can set any owner and any group
	Administers  bool     // it can set attributes in "trusted." and "security."
	Capabilities bool     // it can set security.capability
}

// May reports whether this process can set an owner on a file that it creates
// in a folder. If inherits is set, the system sets the folder's own group.
func (s Self) May(o, folder Owner, inherits bool) bool {
	switch {
	case !o.Known || s.Gives || o == s.Owner:
		return true
	case o.User != s.Owner.User:
		return false
	}
	return o.Group == s.Owner.Group || slices.Contains(s.Groups, o.Group) || inherits && folder.Known && o.Group == folder.Group
}

// Sets reports whether this process can set an attribute of its own file.
func (s Self) Sets(key string) bool {
	switch {
	case key == XattrCapability:
		return s.Capabilities
	case strings.HasPrefix(key, "trusted."), strings.HasPrefix(key, "security."):
		return s.Administers
	}
	return true
}
