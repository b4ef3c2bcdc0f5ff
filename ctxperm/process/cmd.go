package process

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
)

// Cmd is a program to be run.
type Cmd struct {
	Argv    []string          // the program and its arguments; a name without a slash is looked for in the driver's path, one with a slash below Dir
	Root    string            // name of the root that Dir lies in; default "workspace"
	Dir     string            // where it is started, relative to the root; default the root itself
	Env     map[string]string // variables beside the driver's; PATH is the driver's alone
	Stdin   io.Reader         // nil: empty
	Timeout time.Duration     // until it is killed; 0: when the call's own time is up
	Network bool              // it may use the host's network, which takes the access connect on its own resource

	// Output is told what the program writes, as it comes: at most once at a time
	// for each stream, and not after Run has returned. It must not keep data.
	Output func(s Stream, data []byte)
}

// ErrTimeout says that a program was killed because its Cmd.Timeout was over.
var ErrTimeout = errors.New("the program ran out of time and was killed")

// Stream is where a program writes.
type Stream int

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Result is how a program ended.
type Result struct {
	Code               int      // exit code; -1 when a signal ended it
	Signal             string   // that did, such as "killed"; else empty
	Stdout             []byte   // what was kept of it
	Stderr             []byte   // what was kept of it
	TruncatedBytes     int64    // bytes of both that were not kept, out of the middle
	ChangedFiles       int      // names that it wrote, deleted or changed, which are not yet applied
	SkippedChanges     []string // what it left behind that cannot be applied, and why
	Survivors          int      // processes that it left running and that were ended
	Level              Level    // of the sandbox that it ran in
	MissingProtections []string // what that lacked; empty at Strict

	Restrictions []Restriction // rules of the sandbox that the program met, whether or not it failed by them
}

// Restriction is a rule of the sandbox that a program met.
type Restriction struct {
	Rule string `json:"rule"` // name of the rule, such as "link"
	Text string `json:"text"` // what the program asked for, what it got instead, and what to do
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkVariable(assignment string) error {
	name, value, ok := strings.Cut(assignment, "=")
	switch {
	case !ok || !variable.MatchString(name):
		return fmt.Errorf("%q is no variable: one is a name of letters, digits and _, and a value", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("the variable %s holds a NUL", name)
	case name == "PATH":
		return errors.New("PATH says what a program's name means, so only the driver sets it")
	}
	return nil
}

// check fills in what is left out, and refuses what no sandbox would run.
func (c Cmd) check() (Cmd, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return c, fmt.Errorf("run: %w: argv names no program", ctxperm.ErrInvalid)
	}
	if c.Root == "" {
		c.Root = "workspace"
	}
	if c.Dir == "" {
		c.Dir = "."
	}
	if _, err := perm.FileResource(c.Root, c.Dir); err != nil {
		return c, fmt.Errorf("run: %w: the folder: %w", ctxperm.ErrInvalid, err)
	}
	for name, value := range c.Env {
		if err := checkVariable(name + "=" + value); err != nil {
			return c, fmt.Errorf("run: %w: %w", ctxperm.ErrInvalid, err)
		}
	}
	return c, nil
}

// Access is what running the command is asked for as: execute on the program, with the
// whole command line for the policy to see, and connect on it where it is to have the
// network. A program by name is exec://name; one by a path that begins with a slash is
// exec:///path; one by another path is a file of the command's root, file://root/path.
// It refuses a command that no sandbox would run.
func (c Cmd) Access() ([]perm.ResourceAccess, error) {
	_, all, err := c.complete()
	return all, err
}

// complete is the command without anything left out, and what it is asked for as.
func (c Cmd) complete() (Cmd, []perm.ResourceAccess, error) {
	c, err := c.check()
	if err != nil {
		return c, nil, err
	}
	line, err := perm.NewArgv(c.Argv...)
	if err != nil {
		return c, nil, fmt.Errorf("run: %w: %w", ctxperm.ErrInvalid, err)
	}
	r, err := c.program()
	if err != nil {
		return c, nil, fmt.Errorf("run: %w: the program: %w", ctxperm.ErrInvalid, err)
	}
	all := []perm.ResourceAccess{{Action: perm.Execute, Resource: r.String(), Argv: line}}
	if c.Network {
		all = append(all, perm.Access(perm.Connect, r.String()))
	}
	return c, all, nil
}

func (c Cmd) program() (perm.Resource, error) {
	name := c.Argv[0]
	if !strings.Contains(name, "/") {
		return perm.KindExec.Resource(name)
	}
	if !path.IsAbs(name) {
		return perm.FileResource(c.Root, path.Join(c.Dir, name))
	}
	return perm.KindExec.Resource("", strings.Split(path.Clean(name)[1:], "/")...)
}

func (c Cmd) environment(d *Driver) []string {
	all := []string{"PATH=" + d.cfg.Path, "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8"}
	all = append(all, d.cfg.Env...)
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		all = append(all, name+"="+c.Env[name])
	}
	return all
}
