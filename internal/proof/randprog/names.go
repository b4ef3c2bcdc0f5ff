//go:build linux

package randprog

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// names returns the operations on names: folders, links, renames, removals.
func names() []operation {
	return []operation{
		{name: "remove", weight: 7, run: (*actor).remove},
		{name: "remove tree", weight: 3, run: (*actor).removeTree},
		{name: "rename", weight: 8, run: (*actor).rename},
		{name: "rename folder", weight: 5, run: (*actor).renameFolder},
		{name: "exchange", weight: 3, run: (*actor).exchange},
		{name: "mkdir", weight: 6, run: (*actor).mkdir},
		{name: "deep", weight: 1, run: (*actor).deep},
		{name: "symlink", weight: 4, run: (*actor).symlink},
		{name: "link", weight: 9, run: (*actor).link},
		{name: "link again", weight: 4, run: (*actor).relink},
		{name: "swap names", weight: 3, run: (*actor).swap},
		{name: "other type", weight: 3, run: (*actor).otherType},
		{name: "pipe", weight: 1, setup: true, run: (*actor).pipe},
	}
}

func (a *actor) remove() (string, error) {
	name, err := a.entry()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q", name), os.Remove(name)
}

func (a *actor) removeTree() (string, error) {
	name, err := a.folder()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q", name), os.RemoveAll(name)
}

func (a *actor) rename() (string, error) {
	name, err := a.entry()
	to := a.fresh()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q to %q", name, to), unix.Rename(name, to)
}

func (a *actor) renameFolder() (string, error) {
	name, err := a.folder()
	to := a.fresh()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q to %q", name, to), unix.Rename(name, to)
}

func (a *actor) exchange() (string, error) {
	one, err := a.entry()
	if err != nil {
		return "", err
	}
	other, err := a.entry()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q and %q", one, other), unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
}

func (a *actor) mkdir() (string, error) {
	name := a.fresh()
	perm := []os.FileMode{0o755, 0o700, 0o775, 0o711}[a.random.IntN(4)]
	return fmt.Sprintf("%q", name), os.Mkdir(name, perm)
}

func (a *actor) deep() (string, error) {
	name := a.fresh()
	for range 12 {
		name = path.Join(name, "d")
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return name, err
	}
	return fmt.Sprintf("%q", name), os.WriteFile(path.Join(name, "f"), []byte("deep\n"), 0o644)
}

func (a *actor) symlink() (string, error) {
	name := a.fresh()
	// No target leads out of the folder to an existing file: cp and mv follow
	// links.
	target := []string{"a", "./a", "nowhere", "/nonexistent/x", "src/main.go", ".", "lib", "in\xffvalid", "x\ny"}[a.random.IntN(9)]
	return fmt.Sprintf("%q to %q", name, target), os.Symlink(target, name)
}

func (a *actor) link() (string, error) {
	name, err := a.any(a.files)
	to := a.fresh()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q as %q", name, to), os.Link(name, to)
}

// relink separates two names of a file and joins them in another file of the
// same content.
func (a *actor) relink() (string, error) {
	name, err := a.any(a.files)
	if err != nil {
		return "", err
	}
	all := sharing(name, a.files)
	data, err := os.ReadFile(name)
	if err != nil {
		return name, err
	}
	temporary := path.Join(path.Dir(name), ".again")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return name, err
	}
	for _, one := range all {
		if err := os.Remove(one); err != nil {
			return name, err
		}
	}
	for _, one := range all {
		if err := os.Link(temporary, one); err != nil {
			return name, err
		}
	}
	return fmt.Sprintf("%q", all), os.Remove(temporary)
}

// sharing returns the names of the same file.
func sharing(name string, among []string) (all []string) {
	var want, is unix.Stat_t
	if unix.Lstat(name, &want) != nil {
		return []string{name}
	}
	for _, other := range among {
		if unix.Lstat(other, &is) == nil && is.Ino == want.Ino && is.Dev == want.Dev {
			all = append(all, other)
		}
	}
	return all
}

// swap exchanges the files of two names through a third name.
func (a *actor) swap() (string, error) {
	one, err := a.any(a.files)
	if err != nil {
		return "", err
	}
	other, err := a.any(a.files)
	if err != nil || other == one {
		return "", errNothing
	}
	between := path.Join(path.Dir(one), ".between")
	for _, step := range [][2]string{{one, between}, {other, one}, {between, other}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			return one, err
		}
	}
	return fmt.Sprintf("%q and %q", one, other), nil
}

// otherType replaces a file with a folder, a file or a link.
func (a *actor) otherType() (string, error) {
	name, err := a.entry()
	kind := a.random.IntN(3)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(name); err != nil {
		return name, err
	}
	what := fmt.Sprintf("%q kind %d", name, kind)
	switch kind {
	case 0:
		if err := os.Mkdir(name, 0o755); err != nil {
			return what, err
		}
		return what, os.WriteFile(path.Join(name, "inside"), []byte("i"), 0o644)
	case 1:
		return what, os.Symlink("elsewhere", name)
	default:
		return what, os.WriteFile(name, []byte("file now\n"), 0o644)
	}
}

func (a *actor) pipe() (string, error) {
	name := a.fresh()
	return fmt.Sprintf("%q", name), unix.Mkfifo(name, 0o644)
}
