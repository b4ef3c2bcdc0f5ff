package crash_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/disk/simdisk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/files"
)

// kind is a kind of call: what it asks the runtime for, and what it does in the
// model, which is all that the oracle knows of it.
type kind struct {
	name string
	tool string
	args tool.Args             // nil: the tag of the call, as text
	do   func(f fileTree) bool // what it does to files; false: it cannot be done, and does nothing
}

// fileTree is what the model knows of files: not their times.
type fileTree map[string]entry

type entry struct {
	kind    disk.Type
	perm    fs.FileMode
	content string
}

// furnish makes the files that are there before.
func furnish(r disk.Root) {
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

// kinds are the calls that transactions are made of.
var kinds = []kind{
	{name: "write", tool: "file_write", args: tool.Args{"path": "a.txt", "content": "written"}, do: put("a.txt", "written")},
	{name: "create", tool: "file_write", args: tool.Args{"path": "new.txt", "content": "created"}, do: put("new.txt", "created")},
	{name: "delete", tool: "file_delete", args: tool.Args{"path": "a.txt"}, do: remove("a.txt")},
	{name: "rename", tool: "file_move", args: tool.Args{"from": "a.txt", "to": "new.txt"}, do: move("a.txt", "new.txt")},
	{name: "pure", tool: "think"},
}

func kindNamed(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// tools are what there is for them. They find the service through the context, so that
// one set of them serves all worlds.
var tools = slices.Concat(files.Tools(), ownTools())

func ownTools() []tool.Tool {
	var out []tool.Tool
	add := func(t tool.Tool, err error) {
		must(err)
		out = append(out, t)
	}
	add(tool.Create("think", "Does nothing.", func(context.Context, string) (string, error) { return "thought", nil }, tool.Pure()))
	return out
}

// policy lets everything through.
var policy = perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
	return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
})
