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

// Main makes this program the shim of its own sandbox. It must be called first
// thing in main, before flags are read: in a process that was started as a shim it
// does not return.
func Main() { sandbox.Main() }

// Level is how much stands between a program and the machine.
type Level string

// The levels, weakest first.
const (
	None    Level = "none"    // no sandbox: no program runs
	Partial Level = "partial" // something is missing, which the result names
	Strict  Level = "strict"  // every layer
)

// Limits bound one run. A zero field takes its default.
type Limits struct {
	Processes int           // at once; default 4096
	Files     int           // open in one process; default 4096
	FileSize  int64         // of one file, in bytes; default 16 GiB
	Memory    int64         // private, of one process, in bytes; default 16 GiB
	Scratch   int64         // what /tmp may hold, in bytes; default 1 GiB
	CPU       time.Duration // of one process; default 1 hour
}

// Config is what a Driver is made of. The zero Config is of use.
type Config struct {
	Shim      string   // path of a program that calls Main; empty: this program, which does
	Require   Level    // the least level that will do; default Strict
	Scratch   string   // a folder outside every root for what is not yet applied, made where it is not there; default one of this user's among the system's temporary files
	Path      string   // where programs without a slash are looked for; default the usual folders of the system and of toolchains, such as /usr/bin, /usr/sbin and /usr/local/go/bin
	Env       []string // variables for every program, "KEY=value"
	Limits    Limits
	UseCopies bool // programs see copies of the roots that they can write also where an overlay would do

	// Author returns who commits of programs in a root are by, where no configuration that
	// they see says it. GitAuthor reads it from the configuration of the user. Default:
	// nobody is named, and git refuses to commit.
	Author    func(ctx context.Context, dir string) Author
	MaxOutput int // how much of standard output, and of standard error, is kept, in bytes; default 1 MiB each
}

// Driver runs programs for a runtime: agent.Driver takes it. A runtime without one
// runs them as the zero Config says. It is safe for concurrent use.
type Driver struct {
	cfg   Config
	least sandbox.Level

	sweep sync.Once

	mu      sync.Mutex // never held across a wait
	seen    map[string]*index
	foreign map[string]string      // why no overlay of a folder will do; empty: one will
	copies  map[string][]*rootCopy // that no run uses, by root
	authors map[string]knownAuthor // by folder of the root
}

// New makes a driver. It refuses what no run could keep.
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

// Schemes returns none: what a program changes are files, which have theirs.
func (*Driver) Schemes() []revert.Scheme { return nil }

// standing is the driver of runtimes that were given none.
var standing = sync.OnceValues(func() (*Driver, error) { return New(Config{}) })

func (l Limits) sandbox() sandbox.Limits {
	return sandbox.Limits{
		Processes: l.Processes, Files: l.Files, FileSize: l.FileSize, Data: l.Memory, Scratch: l.Scratch, CPU: l.CPU,
	}
}
