package sandbox

import (
	"io/fs"
	"os"
	"time"
)

// Shim is the binary that becomes process 1 of a sandbox: the path of a program
// that calls Main. The empty one is this program itself, if it called Main.
type Shim string

// Stdio are the program's standard files. A nil one is empty, or goes nowhere.
// They stay open: the caller closes its own ends.
type Stdio struct{ In, Out, Err *os.File }

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit code; -1 when a signal ended it
	Signal string // the signal that ended it, such as "killed"; empty
	Left   int    // processes that it left running and that were killed, as far as they were seen
	Met    []Restriction
}

// Restriction is a rule of the sandbox that a program met, whether or not the
// program failed by it.
type Restriction struct {
	Rule string // name of the rule, such as "link"
	Text string // what the program asked for, what it got instead, and what to do
}

// Kind is what lies at a name in an overlay's upper folder.
type Kind string

// The kinds of Written.
const (
	File    Kind = "file"
	Folder  Kind = "folder"
	Link    Kind = "link"    // symbolic
	Deleted Kind = "deleted" // what the root has by that name is gone
	Other   Kind = "other"   // a socket, a pipe, a device
)

// OverlayEntry is one name that the program wrote, or that lies above one that it
// did: what a folder was only walked through for looks as it does in the root.
type OverlayEntry struct {
	Name     string // below the root, slash-separated; "." is the root itself
	Kind     Kind
	Mode     fs.FileMode // permission bits, setuid, setgid and sticky
	Mtime    time.Time
	Size     int64
	Target   string            // of a link
	Uid, Gid uint32            // to whom it belongs
	Xattrs   map[string][]byte // all that this process can read, but for what the overlay notes
	Unseen   string            // how the attributes begin that the root can have and no program sees; empty: programs see all
	Copied   bool              // it began as what the root has by this name or, where it was moved, by another
	Same     bool              // it is still the file or folder that the root has by this name, as far as can be told
	Replaced bool              // a folder of which nothing that the root has below it is left
	Ino      uint64            // with Links > 1: other names of the same file have the same
	Links    uint64
	Dev      uint64 // of Other: the device's number
}
