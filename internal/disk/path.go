package disk

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// CheckPath returns nil for a clean relative path: elements separated by single
// slashes, none of them empty, "." or "..". Everything else is ErrPath: absolute
// and empty names, trailing slashes, NUL, and on Windows also what that system
// reads as another name. A name is bytes, which need not be text: people's
// folders hold such names. The single "." is refused too; methods that allow it
// say so. Length is left to the kernel.
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

// The extended attributes that are part of who may do what with a file.
const (
	XattrAccess     = "system.posix_acl_access"  // the list of who may, beside the bits
	XattrDefault    = "system.posix_acl_default" // of a directory: the list that what is made in it begins with
	XattrCapability = "security.capability"      // what the file may as a program
)

// CheckXattr returns nil for the name of an extended attribute that a Root
// keeps: the two access control lists, and at least one more byte after "user.",
// "trusted." or "security.", 255 in all, no NUL. Everything else is ErrPath, and
// so is what the system makes by itself for each file: labels and checksums.
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

// systemMade reports whether a security module gives each file the attribute.
func systemMade(name string) bool {
	switch name {
	case "selinux", "apparmor", "ima", "evm":
		return true
	}
	return strings.HasPrefix(name, "SMACK64")
}

// CheckTarget returns nil for what a symbolic link can store: anything but
// the empty text and a NUL, which are ErrPath.
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

// checkPerm refuses bits that are no permission, such as a type.
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
