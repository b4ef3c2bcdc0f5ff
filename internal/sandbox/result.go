package sandbox

import (
	"io/fs"
	"os"
	"time"
)

// Shim is the binary that becomes process 1 of a sandbox: the path of a program
// that calls Main. The empty Shim is this program itself, if it called Main.
type Shim string

// Stdio holds the program's standard files. A nil one is empty, or discards
// data. They stay open: the caller closes its own ends.
type Stdio struct{ In, Out, Err *os.File }

// Exit describes how a program ended.
type Exit struct {
	Code   int    // exit code; -1 if a signal ended it
	Signal string // the signal that ended it, such as "killed"; else empty
	Left   int    // number of killed processes that it left running, as far as known
	Met    []Restriction
}

// Restriction is a rule of the sandbox that a program met, even if the program
// did not fail because of it.
type Restriction struct {
	Rule string // name of the rule, such as "link"
	Text string // what the program requested, what it got instead, and what to do
}

// Kind is the kind of a name in an overlay's upper folder.
type Kind string

// The kinds of an OverlayEntry.
const (
	File    Kind = "file"
	Folder  Kind = "folder"
	Link    Kind = "link"    // symbolic link
	Deleted Kind = "deleted" // deletes the root's file of this name
	Other   Kind = "other"   // a socket, a pipe, a device
)

// OverlayEntry is one name that the program wrote, or a parent of one. A folder
// that only contains one looks as in the root.
type OverlayEntry struct {
	Name         string // below the root, slash-separated; "." is the root itself
	Kind         Kind
	Mode         fs.FileMode // permission bits, setuid, setgid and sticky
	Mtime        time.Time
	Size         int64
	Target       string            // target of a link
	Uid, Gid     uint32            // owner
	Xattrs       map[string][]byte // all that this process can read, except the overlay's metadata
	HiddenPrefix string            // prefix of attributes that the root can have and no program sees; empty: programs see all
	Copied       bool              // began as the root's file of this name or, if moved, of another one
	Same         bool              // is still the root's file or folder of this name, as far as known
	Replaced     bool              // a folder that keeps none of the root's entries below it
	Ino          uint64            // set if Links > 1: other names of the same file have the same number
	Links        uint64
	Dev          uint64 // for Other: the device's number
}
