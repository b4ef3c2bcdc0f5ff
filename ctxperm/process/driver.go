package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/revert"
)

// Main makes this program the shim of its own sandbox. Call it first in main,
// before flags are parsed. In a process that was started as a shim it does not
// return.
func Main() { sandbox.Main() }

// Level is the level of protection between a program and the machine.
type Level string

// The levels, weakest first.
const (
	None    Level = "none"    // no sandbox: no program runs
	Partial Level = "partial" // some protections are missing; the result lists them
	Strict  Level = "strict"  // all protections
)

// Limits bounds one run. A zero field has its default.
type Limits struct {
	Processes int           // processes at once; default 4096
	Files     int           // open files of one process; default 4096
	FileSize  int64         // bytes of one file; default 16 GiB
	Memory    int64         // bytes of private memory of one process; default 16 GiB
	Scratch   int64         // bytes in /tmp; default 1 GiB
	CPU       time.Duration // processor time of one process; default 1 hour
}

// Config configures a Driver. The zero Config is valid.
type Config struct {
	Shim      string   // path of a program that calls Main; empty: this program, which calls it
	Require   Level    // the minimum level; default Strict
	Scratch   string   // a folder outside every root for changes not yet applied, created if missing; default one of this user below the system's temporary folder
	Path      string   // search path for programs without a slash; default the usual folders of the system and of toolchains, such as /usr/bin, /usr/sbin and /usr/local/go/bin
	Env       []string // variables for every program, "KEY=value"
	Limits    Limits
	UseCopies bool // always shows programs copies of their writable roots, instead of overlays

	// Author returns the author of commits of programs in a root, if no
	// configuration that they see has one. GitAuthor reads it from the
	// configuration of the user. Default: no author, and git refuses to commit.
	Author    func(ctx context.Context, dir string) Author
	MaxOutput int // kept bytes of standard output, and of standard error; default 1 MiB each
}

// Driver runs programs for a runtime; pass it to agent.Driver. A runtime
// without one uses the zero Config. A Driver is safe for concurrent use.
type Driver struct {
	cfg   Config
	least sandbox.Level

	sweep sync.Once

	mu      sync.Mutex // never held across a wait
	seen    map[string]*index
	foreign map[string]string      // why an overlay of a folder does not suffice; empty: it does
	copies  map[string][]*rootCopy // unused copies, by root
	authors map[string]knownAuthor // by folder of the root
}

// New creates a driver. It refuses limits that no run can meet.
func New(c Config) (*Driver, error) {
	if c.Require == "" {
		c.Require = Strict
	}
	least, err := sandbox.ParseLevel(string(c.Require))
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	if least == sandbox.None {
		return nil, errors.New("process: the level none means that no program runs; leave the tools out instead")
	}
	if c.Path == "" {
		c.Path = sandbox.Path
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = 1 << 20
	}
	if c.Scratch == "" {
		c.Scratch = filepath.Join(os.TempDir(), fmt.Sprintf("remit-%d", os.Getuid()))
	}
	if c.Scratch, err = filepath.Abs(c.Scratch); err != nil {
		return nil, fmt.Errorf("process: the scratch folder: %w", err)
	}
	for _, v := range c.Env {
		if err := checkVariable(v); err != nil {
			return nil, fmt.Errorf("process: %w", err)
		}
	}
	return &Driver{cfg: c, least: least, seen: map[string]*index{}, foreign: map[string]string{}, copies: map[string][]*rootCopy{}, authors: map[string]knownAuthor{}}, nil
}

// Schemes returns nil: a program changes files, which have their own scheme.
func (*Driver) Schemes() []revert.Scheme { return nil }

// defaultDriver returns the driver of runtimes without one.
var defaultDriver = sync.OnceValues(func() (*Driver, error) { return New(Config{}) })

func (l Limits) sandbox() sandbox.Limits {
	return sandbox.Limits{
		Processes: l.Processes, Files: l.Files, FileSize: l.FileSize, Data: l.Memory, Scratch: l.Scratch, CPU: l.CPU,
	}
}
