//go:build linux

package randprog

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Config says what a program may choose from.
type Config struct {
	Seed  uint64
	Steps int
	// Setup adds operations of the person who prepares a folder: files of other
	// owners, privileged attributes, pipes. A sandboxed program cannot perform
	// them.
	Setup bool
	// Groups are the groups that a file may get.
	Groups []int
	// Log receives one line for each executed step; nil: none.
	Log func(string)
}

// actor is one run of a program.
type actor struct {
	Config
	random *rand.Rand
	dirs   []string // below the folder, "." first
	files  []string // regular files
	links  []string // symbolic links
}

// Act runs the program on the current folder. It returns an error only if it
// cannot list the folder.
func Act(c Config) error {
	a := &actor{Config: c, random: rand.New(rand.NewPCG(c.Seed, 0x9E3779B97F4A7C15))}
	ops := operations()
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	for range c.Steps {
		if err := a.list(); err != nil {
			return err
		}
		n := a.random.IntN(total)
		for _, o := range ops {
			if n -= o.weight; n < 0 {
				a.step(o)
				break
			}
		}
	}
	return nil
}

// step executes one operation and logs whether the system allowed it.
func (a *actor) step(o operation) {
	if o.setup && !a.Setup {
		return
	}
	what, err := o.run(a)
	if a.Log == nil || errors.Is(err, errNothing) {
		return
	}
	line := o.name + " " + what
	if err != nil {
		line += ": " + err.Error()
	}
	a.Log(line)
}

// list reads the names of the folder in byte order. It does not list the
// content of a folder that the program may not read.
func (a *actor) list() error {
	a.dirs, a.files, a.links = nil, nil, nil
	return filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			a.dirs = append(a.dirs, name)
		case d.Type().IsRegular():
			a.files = append(a.files, name)
		case d.Type() == fs.ModeSymlink:
			a.links = append(a.links, name)
		}
		return nil
	})
}

// errNothing says that the folder contains nothing for an operation.
var errNothing = errors.New("nothing to do it with")

// any chooses an element of a list.
func (a *actor) any(from []string) (string, error) {
	if len(from) == 0 {
		return "", errNothing
	}
	return from[a.random.IntN(len(from))], nil
}

// folder chooses a folder other than the top one.
func (a *actor) folder() (string, error) {
	if len(a.dirs) < 2 {
		return "", errNothing
	}
	return a.dirs[1+a.random.IntN(len(a.dirs)-1)], nil
}

// entry chooses any name except that of the top folder, or of a pipe: a call
// that removes a pipe is refused.
func (a *actor) entry() (string, error) {
	return a.any(slices.Concat(a.dirs[1:], a.files, a.links))
}

// fresh chooses a name in some folder that may be free or not.
func (a *actor) fresh() string {
	dir := a.dirs[a.random.IntN(len(a.dirs))]
	return path.Join(dir, a.name())
}

// name chooses among ordinary and odd names; few of them, so that they collide.
func (a *actor) name() string {
	plain := []string{"a", "b", "c", "main.go", "x.txt", "data.bin", "README", "lib", "src", ".hidden", "core", "t", "t2"}
	odd := []string{
		" ", "-rf", "new\nline", "tab\tname", "in\xff\xfevalid", "ünï", "ü", "A", "MAIN.GO", "a*b?[c]", `back\slash`, "quote'\"", "...", "..x", "$HOME",
		"~", "#x#", ".wh.a", ".git2", "nul", "con.txt", "trailing ", strings.Repeat("long", 63) + "xyz", "\x01\x7f", "日本語",
	}
	if a.random.IntN(4) == 0 {
		return odd[a.random.IntN(len(odd))]
	}
	return plain[a.random.IntN(len(plain))]
}

// bytes returns content: mostly small, sometimes of several pages, sometimes
// one repeated byte.
func (a *actor) bytes() []byte {
	n := []int{0, 1, 3, 40, 700, 4096, 5000, 66_000}[a.random.IntN(8)]
	out := make([]byte, n)
	if a.random.IntN(3) == 0 {
		return out // written zeros are not a hole
	}
	for i := range out {
		out[i] = "0123456789abcdef\n"[a.random.IntN(17)]
	}
	return out
}

// time chooses a time that does not occur by chance.
func (a *actor) time() unix.Timespec {
	secs := []int64{-86_400*365*20 + 7, 0, 1, 1_234_567_890, 1_600_000_000, 4_294_967_296 + 5, 9_000_000_000}
	return unix.Timespec{Sec: secs[a.random.IntN(len(secs))], Nsec: []int64{0, 1, 999_999_999, 123_456_789}[a.random.IntN(4)]}
}

// open opens a file for writing, without following a link.
func open(name string, flags int) (*os.File, error) {
	return os.OpenFile(name, flags|unix.O_NOFOLLOW, 0o644)
}
