package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level is how much stands between a program and the machine. Levels are
// ordered: None < Partial < Strict.
type Level int

// The levels. The zero value is the weakest.
const (
	None    Level = iota // no sandbox
	Partial              // something is missing, see Protections.Missing
	Strict               // every layer
)

func (l Level) String() string {
	switch l {
	case Strict:
		return "strict"
	case Partial:
		return "partial"
	case None:
	}
	return "none"
}

// ParseLevel reads what String writes.
func ParseLevel(text string) (Level, error) {
	for _, l := range []Level{None, Partial, Strict} {
		if l.String() == text {
			return l, nil
		}
	}
	return None, fmt.Errorf("there is no sandbox level %q; there are none, partial and strict", text)
}

// Protections is what a run really had.
type Protections struct {
	Level    Level    `json:"level"`
	Missing  []string `json:"missing,omitempty"` // each layer that is not there, and why
	Landlock int      `json:"landlock"`          // version of the kernel's Landlock, 0: none
	Group    []string `json:"group,omitempty"`   // what a control group of the run holds: memory, processes, kill

	// Moves says why the kernel does not rename folders of an overlay itself, so that the
	// shim moves their content; empty: it does, or there is no overlay.
	Moves string `json:"moves,omitempty"`
	// Unsupervised says why renaming a folder of an overlay fails; empty: it does not.
	Unsupervised string `json:"unsupervised,omitempty"`
}

// unsupervised is what a program meets where nothing renames folders for it.
func (r Protections) unsupervised() Restriction {
	return Restriction{"rename", "rename of a folder: in the sandbox it fails as between two file systems (EXDEV) because " + r.Unsupervised + "; copy and remove the folder"}
}

// ErrLevel is returned when a run would have less than the level that it
// requires. The program was not started.
var ErrLevel = errors.New("the sandbox does not reach the level that is required")

// ErrNoSandbox is returned where no sandbox can be had at all.
var ErrNoSandbox = errors.New("there is no sandbox here")

// NoOverlayError is returned where a root cannot be seen through an overlay. The
// program was not started; a caller that looks at the root before and after may
// show it Direct instead.
type NoOverlayError struct{ Root, Why string }

func (e NoOverlayError) Error() string {
	return "the root " + e.Root + " cannot be seen through an overlay: " + e.Why
}

// View is how a program sees a root.
type View string

// The views of a root.
const (
	Read    View = "read"    // as it is; nothing can be written
	Overlay View = "overlay" // writes land beside it, see Process.Changes
	Direct  View = "direct"  // writes land in it: the caller looks afterwards what changed
)

// Root is a folder that a program sees, at the path that it has on the host.
type Root struct {
	Dir    string   // absolute and clean, without symbolic links
	Dev    uint64   // with Ino: what the folder must be. Both 0: whatever is there
	Ino    uint64   // see Dev
	View   View     // how it is seen
	Upper  string   // of an Overlay: an empty folder of the host for what is written; empty: in memory. Of Direct: a folder that is shown in its place; empty: none
	Masked []string // names below the root, slash-separated, that the program does not see
}

// maxRoots is bounded by the descriptors that one message carries.
const maxRoots = 64

// Limits bound a run. A zero field takes its default.
type Limits struct {
	Processes int           // at once; default 4096
	Files     int           // open in one process; default 4096
	FileSize  int64         // of one file, in bytes; default 16 GiB
	Data      int64         // private memory of one process, in bytes; default 16 GiB
	Scratch   int64         // what /tmp and overlays in memory may hold, in bytes; default 1 GiB
	Memory    int64         // of everything together, in bytes; 0: no such bound. It takes a control group
	CPU       time.Duration // of one process, in whole seconds; default 1 hour
}

func (l Limits) withDefaults() Limits {
	set := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	if l.Processes <= 0 {
		l.Processes = 4096
	}
	if l.Files <= 0 {
		l.Files = 4096
	}
	set(&l.FileSize, 16<<30)
	set(&l.Data, 16<<30)
	set(&l.Scratch, 1<<30)
	if l.CPU <= 0 {
		l.CPU = time.Hour
	}
	return l
}

// Spec is what to run and what it may see and use.
type Spec struct {
	Argv    []string // the program and its arguments; a name without a slash is looked for in PATH of Env
	Env     []string // its whole environment, "KEY=value"
	Dir     string   // its working folder, absolute; default "/"
	Roots   []Root
	System  []string // absolute paths of the host that are shown read-only; nil: System()
	Network bool     // the host's network; else none
	Limits  Limits
	Require Level // the least level that will do

	try     bool     // start nothing, see Probe
	without []string // layers that a test leaves out, to see that the others do not stand in for them
}

func (s Spec) check() error {
	switch {
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return errors.New("argv names no program")
	case s.Dir != "" && !clean(s.Dir):
		return fmt.Errorf("the working folder %q is not an absolute clean path", s.Dir)
	}
	for _, text := range slices.Concat(s.Argv, s.Env) {
		if strings.ContainsRune(text, 0) {
			return errors.New("an argument or a variable holds a NUL")
		}
	}
	if len(s.Roots) > maxRoots {
		return fmt.Errorf("%d roots; a program sees at most %d", len(s.Roots), maxRoots)
	}
	for i, r := range s.Roots {
		if err := r.check(); err != nil {
			return err
		}
		for _, other := range s.Roots[:i] {
			if within(r.Dir, other.Dir) || within(other.Dir, r.Dir) {
				return fmt.Errorf("root %s and root %s lie in one another", r.Dir, other.Dir)
			}
		}
	}
	return nil
}

func (r Root) check() error {
	switch {
	case !clean(r.Dir) || r.Dir == "/":
		return fmt.Errorf("root %q is not an absolute clean path below /", r.Dir)
	case r.View != Read && r.View != Overlay && r.View != Direct:
		return fmt.Errorf("root %s has the view %q; there are read, overlay and direct", r.Dir, r.View)
	case r.Upper != "" && !clean(r.Upper):
		return fmt.Errorf("the upper folder %q is not an absolute clean path", r.Upper)
	case r.View == Direct && len(r.Masked) > 0:
		return fmt.Errorf("root %s is written directly, so nothing in it can be masked", r.Dir)
	}
	for _, m := range r.Masked {
		if !filepath.IsLocal(m) || m == "." || m != filepath.Clean(m) {
			return fmt.Errorf("the masked name %q is not a clean name below its root", m)
		}
	}
	return nil
}

func clean(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.ContainsRune(path, 0)
}

// within reports whether path is dir or lies below it. Both are clean: this
// compares what somebody configured and is no decision about authority.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
