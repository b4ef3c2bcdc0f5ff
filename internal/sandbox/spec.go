package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level is the level of protection between a program and the machine. Levels
// are ordered: None < Partial < Strict.
type Level int

// The levels. The zero value is the weakest.
const (
	None    Level = iota // no sandbox
	Partial              // some protections are missing, see Protections.Missing
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

// ParseLevel parses the text that String writes.
func ParseLevel(text string) (Level, error) {
	for _, l := range []Level{None, Partial, Strict} {
		if l.String() == text {
			return l, nil
		}
	}
	return None, fmt.Errorf("there is no sandbox level %q; there are none, partial and strict", text)
}

// Protections describes the protections of a run.
type Protections struct {
	Level    Level    `json:"level"`
	Missing  []string `json:"missing,omitempty"` // each missing layer, with the reason
	Landlock int      `json:"landlock"`          // Landlock version of the kernel; 0: none
	Group    []string `json:"group,omitempty"`   // functions of the run's control group: memory, processes, kill

	// Moves is the reason why the kernel does not rename folders of an overlay
	// itself, so that the shim moves their content. Empty: the kernel does, or
	// there is no overlay.
	Moves string `json:"moves,omitempty"`
	// Unsupervised is the reason why renaming a folder of an overlay fails;
	// empty: it works.
	Unsupervised string `json:"unsupervised,omitempty"`
}

// unsupervised returns the restriction of a program whose folders cannot be
// renamed.
func (r Protections) unsupervised() Restriction {
	return Restriction{"rename", "rename of a folder: in the sandbox it fails as between two file systems (EXDEV) because " + r.Unsupervised + "; copy and remove the folder"}
}

// ErrLevel states that a run would have less than its required level. The
// program was not started.
var ErrLevel = errors.New("the sandbox does not reach the level that is required")

// ErrNoSandbox states that no sandbox is available.
var ErrNoSandbox = errors.New("there is no sandbox here")

// NoOverlayError states that a root cannot have an overlay. The program was not
// started. A caller that compares the root before and after may show it Direct
// instead.
type NoOverlayError struct{ Root, Why string }

func (e NoOverlayError) Error() string {
	return "the root " + e.Root + " cannot be seen through an overlay: " + e.Why
}

// View is how a program sees a root.
type View string

// The views of a root.
const (
	Read    View = "read"    // read-only
	Overlay View = "overlay" // writes land beside it, see Process.Changes
	Direct  View = "direct"  // writes land in it: the caller compares afterwards
)

// Root is a folder that a program sees, at its path on the host.
type Root struct {
	Dir    string   // absolute and clean, without symbolic links
	Dev    uint64   // identity of the folder, with Ino; both 0: any folder
	Ino    uint64   // see Dev
	View   View     // the program's view
	Upper  string   // for Overlay: an empty folder of the host for the written entries; empty: memory. For Direct: a folder shown in its place; empty: none
	Masked []string // slash-separated names below the root that the program does not see
}

// maxRoots bounds the roots, because one message carries a limited number of
// descriptors.
const maxRoots = 64

// Limits bounds a run. A zero field has its default.
type Limits struct {
	Processes int           // processes at once; default 4096
	Files     int           // open files of one process; default 4096
	FileSize  int64         // bytes of one file; default 16 GiB
	Data      int64         // bytes of private memory of one process; default 16 GiB
	Scratch   int64         // bytes in /tmp and in overlays in memory; default 1 GiB
	Memory    int64         // bytes of memory of all processes; 0: no bound. It needs a control group
	CPU       time.Duration // processor time of one process, in whole seconds; default 1 hour
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

// ProxyPort is the port of a proxy, on the loopback of the sandbox.
const ProxyPort = 3128

// Spec specifies a program and what it may see and use.
type Spec struct {
	Argv    []string // program and arguments; PATH of Env resolves a name without a slash
	Env     []string // its whole environment, "KEY=value"
	Dir     string   // its working folder, absolute; default "/"
	Roots   []Root
	System  []string // absolute paths of the host to show read-only; nil: System()
	Home    string   // an empty writable folder at this absolute path, also for what System has in it; empty: none
	Network bool     // permits the host's network; else none
	// Proxy are the variables of a program that gets a proxy: a listener on
	// ProxyPort of its own loopback, which Process.Proxy returns. Nil: no
	// listener. Without a network of its own, the program gets neither, and
	// Exit.Met names the restriction.
	Proxy []string
	// Terminal is 1 plus the descriptor, 0 to 2, that is the program's
	// controlling terminal. No other program may have it. 0: it has none.
	Terminal int
	Limits   Limits
	Require  Level // the minimum level

	try     bool     // start no program, see Probe
	without []string // layers that a test omits, to test the others alone
}

func (s Spec) check() error {
	switch {
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return errors.New("argv names no program")
	case s.Dir != "" && !clean(s.Dir):
		return fmt.Errorf("the working folder %q is not an absolute clean path", s.Dir)
	case s.Home != "" && (!clean(s.Home) || s.Home == "/"):
		return fmt.Errorf("the home folder %q is not an absolute clean path below /", s.Home)
	}
	for _, text := range slices.Concat(s.Argv, s.Env, s.Proxy) {
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

// within reports whether path is dir or lies below it. Both are clean. It
// compares configured paths, and is no decision about authority.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
