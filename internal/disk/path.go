package disk

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// CheckPath returns nil for a clean relative path: elements separated by single
// slashes, none of them empty, "." or "..". Everything else is ErrPath:
// absolute and empty names, trailing slashes, NUL, and on Windows also names
// that the system reads as another name. A name is bytes, which need not be
// text, since real folders contain such names. The single "." is rejected too;
// methods that accept it say so. The kernel limits the length.
func CheckPath(name string) error {
	if strings.IndexByte(name, 0) >= 0 || !hostPath(name) {
		return ErrPath
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." {
			return ErrPath
		}
	}
	return nil
}

// The extended attributes that affect the permissions of a file.
const (
	XattrAccess     = "system.posix_acl_access"  // the access control list, beside the bits
	XattrDefault    = "system.posix_acl_default" // for a directory: the initial list of new files in it
	XattrCapability = "security.capability"      // capabilities of the file as a program
)

// CheckXattr returns nil for the name of an extended attribute that a Root
// keeps: the two access control lists, and at least one more byte after
// "user.", "trusted." or "security.", 255 in all, no NUL. Everything else is
// ErrPath, and so are the labels and checksums that the system sets by itself
// on each file.
func CheckXattr(key string) error {
	if len(key) > 255 || strings.IndexByte(key, 0) >= 0 {
		return ErrPath
	}
	space, rest, _ := strings.Cut(key, ".")
	switch {
	case key == XattrAccess, key == XattrDefault:
		return nil
	case rest == "", space != "user" && space != "trusted" && space != "security":
		return ErrPath
	case space == "security" && systemMade(rest):
		return ErrPath
	}
	return nil
}

// systemMade reports whether a security module sets the attribute on each file.
func systemMade(name string) bool {
	switch name {
	case "selinux", "apparmor", "ima", "evm":
		return true
	}
	return strings.HasPrefix(name, "SMACK64")
}

// CheckTarget returns nil for a possible target of a symbolic link. The empty
// text and a NUL are ErrPath.
func CheckTarget(target string) error {
	if target == "" || strings.IndexByte(target, 0) >= 0 {
		return ErrPath
	}
	return nil
}

// checkRootPath is CheckPath for methods that also act on the root itself.
func checkRootPath(name string) error {
	if name == "." {
		return nil
	}
	return CheckPath(name)
}

// checkPerm rejects bits that are no permission, such as a type.
func checkPerm(perm fs.FileMode) error {
	if perm&^PermMask != 0 {
		return fs.ErrInvalid
	}
	return nil
}

// inside reports whether a clean path lies below another, element by element.
func inside(name, dir string) bool {
	inner, outer := strings.Split(name, "/"), strings.Split(dir, "/")
	return len(outer) < len(inner) && slices.Equal(outer, inner[:len(outer)])
}

// split cuts a clean path into its parent, "." for the root, and its base.
func split(name string) (parent, base string) {
	return path.Dir(name), path.Base(name)
}
