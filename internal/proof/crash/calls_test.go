package crash_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/tool"
)

// callKind is a kind of call: its tool, and its effect in the model, which is
// all that the oracle knows.
type callKind struct {
	name string
	tool string
	args tool.Args             // nil: the tag of the call, as text
	do   func(f fileTree) bool // its effect on files; false: the call fails and has no effect
	rows bool                  // it changes rows
	tags bool                  // it adds its tag to the state of its session

	outside  bool // it acts on the service
	verified bool // and has a Verify
	stays    bool // and cannot be reverted
	waits    bool // it is held until the commit
	denied   bool
}

// harmless reports whether the kind has no effect.
func (k callKind) harmless() bool { return !k.inHandles() && !k.outside }

// inHandles reports whether versions tell the effect of a call of the kind.
func (k callKind) inHandles() bool { return k.do != nil || k.rows || k.tags }

// fileTree is the model's state of files, without their times.
type fileTree map[string]entry

type entry struct {
	kind    disk.Type
	perm    fs.FileMode
	content string
}

// createFiles creates the initial files.
func createFiles(r disk.Root) {
	must(r.Mkdir("dir", 0o755))
	for _, name := range []string{"a.txt", "b.txt", "dir/c.txt"} {
		f, err := r.Create(name, 0o644)
		must(err)
		_, err = io.WriteString(f, "before "+name)
		must(errors.Join(err, f.Sync(), f.Close()))
	}
	must(r.SyncAll())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func treeOf(found map[string]simdisk.File) fileTree {
	f := fileTree{}
	for path, is := range found {
		f[path] = entry{is.Type, is.Perm, is.Content}
	}
	return f
}

func (f fileTree) hasDir(path string) bool { return path == "" || f[path].kind == disk.TypeDir }

func parentOf(path string) string { return path[:max(strings.LastIndex(path, "/"), 0)] }

func put(path, content string) func(fileTree) bool {
	return func(f fileTree) bool {
		was := f[path]
		switch {
		case !f.hasDir(parentOf(path)), was.kind != 0 && was.kind != disk.TypeFile:
			return false
		case was.kind == 0:
			was = entry{kind: disk.TypeFile, perm: 0o644}
		}
		was.content = content
		f[path] = was
		return true
	}
}

func move(from, to string) func(fileTree) bool {
	return func(f fileTree) bool {
		if f[from].kind == 0 || f[to].kind != 0 || !f.hasDir(parentOf(to)) {
			return false
		}
		for _, path := range slices.Sorted(maps.Keys(f)) {
			if path == from || strings.HasPrefix(path, from+"/") {
				f[to+path[len(from):]] = f[path]
				delete(f, path)
			}
		}
		return true
	}
}

func remove(path string) func(fileTree) bool {
	return func(f fileTree) bool {
		if f[path].kind == 0 {
			return false
		}
		for _, other := range slices.Sorted(maps.Keys(f)) {
			if other == path || strings.HasPrefix(other, path+"/") {
				delete(f, other)
			}
		}
		return true
	}
}

func link(target, path string) func(fileTree) bool {
	return func(f fileTree) bool {
		if f[path].kind != 0 {
			return false
		}
		f[path] = entry{kind: disk.TypeLink, perm: 0o777, content: target}
		return true
	}
}

func mkdir(paths ...string) func(fileTree) bool {
	return func(f fileTree) bool {
		for _, path := range paths {
			if f[path].kind == 0 {
				f[path] = entry{kind: disk.TypeDir, perm: 0o755}
			}
		}
		return true
	}
}

func chmod(path string, perm fs.FileMode) func(fileTree) bool {
	return func(f fileTree) bool {
		is, ok := f[path]
		if is.perm = perm; ok {
			f[path] = is
		}
		return ok
	}
}

func all(steps ...func(fileTree) bool) func(fileTree) bool {
	return func(f fileTree) bool {
		will := maps.Clone(f)
		for _, step := range steps {
			if !step(will) {
				return false
			}
		}
		clear(f)
		maps.Copy(f, will)
		return true
	}
}

func cannot(fileTree) bool { return false }

// kinds are the calls of the transactions. Those of the second part act outside
// handles, by the tag of the call.
var kinds = []callKind{
	{name: "pure", tool: "think"},
	{name: "write", tool: "file_write", args: tool.Args{"path": "a.txt", "content": "written"}, do: put("a.txt", "written")},
	{name: "create", tool: "file_write", args: tool.Args{"path": "new.txt", "content": "created"}, do: put("new.txt", "created")},
	{name: "delete", tool: "file_delete", args: tool.Args{"path": "a.txt"}, do: remove("a.txt")},
	{name: "rename", tool: "file_move", args: tool.Args{"from": "a.txt", "to": "new.txt"}, do: move("a.txt", "new.txt")},
	{name: "mkdir", tool: "dir_create", args: tool.Args{"path": "dir/deep/er"}, do: mkdir("dir", "dir/deep", "dir/deep/er")},
	{name: "prune", tool: "file_delete", args: tool.Args{"path": "dir", "recursive": true}, do: remove("dir")},
	{name: "chmod", tool: "chmod", do: chmod("a.txt", 0o600)},
	{name: "chmod_dir", tool: "chmod_dir", do: chmod("dir", 0o700)},
	{name: "symlink", tool: "symlink", do: link("b.txt", "new.txt")},
	{name: "pair", tool: "pair", do: all(put("b.txt", "of a pair"), put("dir/new.txt", "of a pair"))},
	{name: "broken", tool: "broken", do: cannot},
	{name: "rows", tool: "rows", rows: true},
	{name: "count", tool: "count", tags: true},

	{name: "book", tool: "book", outside: true, verified: true},
	{name: "noted", tool: "noted", outside: true, verified: true},
	{name: "order", tool: "order", outside: true},
	{name: "charge", tool: "charge", outside: true, verified: true, stays: true},
	{name: "fire", tool: "fire", outside: true, stays: true},
	{name: "book_lost", tool: "book_lost", outside: true, verified: true},
	{name: "book_unheard", tool: "book_unheard", outside: true},
	{name: "mail", tool: "mail", outside: true, stays: true, waits: true},
	{name: "keyed_mail", tool: "keyed_mail", outside: true, stays: true, waits: true},
	{name: "seen_mail", tool: "seen_mail", outside: true, verified: true, stays: true, waits: true},
	{name: "forbidden", tool: "forbidden", outside: true, denied: true},
}

func kindNamed(name string) (callKind, bool) {
	i := slices.IndexFunc(kinds, func(k callKind) bool { return k.name == name })
	if i < 0 {
		return callKind{}, false
	}
	return kinds[i], true
}
