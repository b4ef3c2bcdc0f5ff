//go:build linux

package randprog

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// operation is one operation of a step. run returns a description of its
// subject.
type operation struct {
	name   string
	weight int
	setup  bool // only with Config.Setup
	run    func(*actor) (string, error)
}

func operations() []operation {
	return append(append(contents(), names()...), append(attributes(), tools()...)...)
}

// contents returns the operations on the content of files.
func contents() []operation {
	return []operation{
		{name: "create", weight: 12, run: (*actor).create},
		{name: "overwrite", weight: 8, run: (*actor).overwrite},
		{name: "append", weight: 5, run: (*actor).appends},
		{name: "truncate", weight: 4, run: (*actor).truncate},
		{name: "write within", weight: 4, run: (*actor).within},
		{name: "punch", weight: 3, run: (*actor).punch},
		{name: "sparse", weight: 3, run: (*actor).sparse},
		{name: "replace", weight: 6, run: (*actor).replace},
		{name: "many", weight: 1, run: (*actor).many},
	}
}

func (a *actor) create() (string, error) {
	name, data := a.fresh(), a.bytes()
	perm := []os.FileMode{0o644, 0o600, 0o755, 0o444, 0o666, 0o640, 0o400}[a.random.IntN(7)]
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
	if err != nil {
		return name, err
	}
	defer func() { _ = f.Close() }()
	_, err = f.Write(data)
	return fmt.Sprintf("%q %d bytes", name, len(data)), err
}

func (a *actor) overwrite() (string, error) { return a.write(unix.O_WRONLY | unix.O_TRUNC) }

func (a *actor) appends() (string, error) { return a.write(unix.O_WRONLY | unix.O_APPEND) }

func (a *actor) write(flags int) (string, error) {
	name, err := a.any(a.files)
	data := a.bytes()
	if err != nil {
		return "", err
	}
	f, err := open(name, flags)
	if err != nil {
		return name, err
	}
	defer func() { _ = f.Close() }()
	_, err = f.Write(data)
	return fmt.Sprintf("%q %d bytes", name, len(data)), err
}

func (a *actor) truncate() (string, error) {
	name, err := a.any(a.files)
	size := []int64{0, 2, 100, 4096, 10_000, 3 << 20}[a.random.IntN(6)]
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q to %d", name, size), os.Truncate(name, size)
}

func (a *actor) within() (string, error) {
	name, err := a.any(a.files)
	data, at := a.bytes(), int64(a.random.IntN(9000))
	if err != nil {
		return "", err
	}
	f, err := open(name, unix.O_WRONLY)
	if err != nil {
		return name, err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteAt(data, at)
	return fmt.Sprintf("%q %d bytes at %d", name, len(data), at), err
}

func (a *actor) punch() (string, error) {
	name, err := a.any(a.files)
	at := int64(a.random.IntN(4)) * 4096
	if err != nil {
		return "", err
	}
	f, err := open(name, unix.O_RDWR)
	if err != nil {
		return name, err
	}
	defer func() { _ = f.Close() }()
	return fmt.Sprintf("%q at %d", name, at),
		unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, 8192)
}

func (a *actor) sparse() (string, error) {
	name := a.fresh()
	at := []int64{5000, 1 << 20, 40 << 20}[a.random.IntN(3)]
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return name, err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte("end"), at); err != nil {
		return name, err
	}
	return fmt.Sprintf("%q data at %d", name, at), nil
}

// replace does the same as editors: it writes a new file and renames it over
// the old one.
func (a *actor) replace() (string, error) {
	name, err := a.any(a.files)
	data := a.bytes()
	if err != nil {
		return "", err
	}
	temporary := path.Join(path.Dir(name), ".swap")
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return name, err
	}
	return fmt.Sprintf("%q %d bytes", name, len(data)), os.Rename(temporary, name)
}

func (a *actor) many() (string, error) {
	dir := a.fresh()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return dir, err
	}
	for n := range 30 + a.random.IntN(50) {
		if err := os.WriteFile(path.Join(dir, fmt.Sprint("f", n)), fmt.Append(nil, n), 0o644); err != nil {
			return dir, err
		}
	}
	return fmt.Sprintf("files in %q", dir), nil
}
