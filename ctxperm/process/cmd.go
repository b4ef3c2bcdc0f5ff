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
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm"
)

// Cmd is a program to run.
type Cmd struct {
	Argv    []string          // program and arguments; the driver's path resolves a name without a slash, Dir one with a slash
	Root    string            // name of the root that contains Dir; default "workspace"
	Dir     string            // working directory, relative to the root; default the root itself
	Env     map[string]string // variables beside the driver's; only the driver sets PATH
	Stdin   io.Reader         // nil: empty
	Timeout time.Duration     // kills the program after this time; 0: at the timeout of the call
	Network bool              // permits the host's network; needs the access connect on the program's resource

	// Egress gives the program an HTTP proxy, and the variables that name it, if
	// the call may connect to any host (https://HOST or http://HOST). The
	// runtime needs a driver of ctxperm/web. The policy decides each host during
	// the call: connect https://HOST with the method CONNECT, or connect
	// http://HOST with the method of the request. The class of the call must not
	// be pure. A revert restores files; what the program sent stays sent.
	Egress bool

	// Output receives what the program writes, as it comes. Run calls it at
	// most once at a time for each stream, and not after it has returned.
	// Output must not keep data.
	Output func(s Stream, data []byte)

	// Attachment connects the program to a caller; nil: that of the context,
	// see Attach.
	Attachment *Attachment
}

// ErrTimeout states that a program exceeded its Cmd.Timeout and was killed.
var ErrTimeout = errors.New("the program ran out of time and was killed")

// Stream identifies an output of a program.
type Stream int

// The output streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Result describes how a program ended.
type Result struct {
	Code               int      // exit code; -1 if a signal ended it
	Signal             string   // the signal that ended it, such as "killed"; else empty
	Stdout             []byte   // the kept part
	Stderr             []byte   // the kept part
	TruncatedBytes     int64    // bytes of both that were dropped from the middle
	ChangedFiles       int      // number of names that it wrote, deleted or changed; not yet applied
	SkippedChanges     []string // changes that cannot be applied, with reasons
	Survivors          int      // number of processes that it left running and the sandbox ended
	Level              Level    // level of its sandbox
	MissingProtections []string // protections that the sandbox lacked; empty at Strict

	Hosts        []Host        // hosts that the program used through its proxy, or that were refused
	Restrictions []Restriction // rules of the sandbox that the program met, even if it did not fail because of them
}

// Restriction is a rule of the sandbox that a program met.
type Restriction struct {
	Rule string `json:"rule"` // name of the rule, such as "link"
	Text string `json:"text"` // what the program requested, what it got instead, and what to do
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

// check fills in defaults, and refuses a command that no sandbox can run.
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

// Access returns the accesses that the command needs. These are execute on the
// program, with the whole command line for the policy, and connect on it if the
// command uses the network. A program by name is exec://name. One by a path
// that begins with a slash is exec:///path. One by another path is a file of
// the command's root, file://root/path. Access refuses a command that no
// sandbox can run.
func (c Cmd) Access() ([]perm.ResourceAccess, error) {
	_, all, err := c.complete()
	return all, err
}

// complete returns the command with its defaults, and its accesses.
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

// proxyEnv returns the variables of a program with a proxy, except those that
// its environment sets. Its own loopback needs no proxy. A package manager
// repeats no request by itself: it would repeat a refused one for minutes.
func proxyEnv(env []string) []string {
	at := fmt.Sprint("http://127.0.0.1:", sandbox.ProxyPort)
	const own = "localhost,127.0.0.1,::1"
	return slices.DeleteFunc([]string{
		"HTTP_PROXY=" + at, "http_proxy=" + at, "HTTPS_PROXY=" + at, "https_proxy=" + at, "ALL_PROXY=" + at, "all_proxy=" + at,
		"NO_PROXY=" + own, "no_proxy=" + own,
		"npm_config_fetch_retries=0", "PIP_RETRIES=0", "CARGO_NET_RETRY=0", "GIT_TERMINAL_PROMPT=0",
	}, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(env, func(set string) bool { return strings.HasPrefix(set, name+"=") })
	})
}

// environment returns the program's variables. One of the command replaces one
// of the caller, and that one of the driver.
func (c Cmd) environment(d *Driver, home string) []string {
	vars := map[string]string{"PATH": d.cfg.Path, "HOME": home, "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
	for _, assignment := range d.cfg.Env {
		name, value, _ := strings.Cut(assignment, "=")
		vars[name] = value
	}
	if c.Attachment != nil {
		maps.Copy(vars, c.Attachment.Environment.Vars)
		if path := c.Attachment.Environment.Path; path != "" {
			vars["PATH"] = path
		}
	}
	maps.Copy(vars, c.Env)
	all := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		all = append(all, name+"="+vars[name])
	}
	return all
}
