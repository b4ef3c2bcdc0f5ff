package files_test

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/ctxperm/files"
)

// action is one operation, with the name of the path that it changes.
type action struct {
	name string
	file string
	do   func(ctx context.Context, f *files.Files) error
}

func actions() []action {
	write := func(file, data string, o files.WriteOptions) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Write(ctx, file, []byte(data), o) }
	}
	del := func(file string) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, file) }
	}
	return append([]action{
		{"create", "new.txt", write("new.txt", "new", files.WriteOptions{})},
		{"create long", "new.txt", write("new.txt", long, files.WriteOptions{Perm: 0o600})},
		{"create in new folders", "x/y/new.txt", write("x/y/new.txt", "new", files.WriteOptions{MakeParents: true})},
		{"write", "a.txt", write("a.txt", "other", files.WriteOptions{})},
		{"write over long", "long.txt", write("long.txt", "short", files.WriteOptions{Perm: 0o600})},
		{"edit", "a.txt", func(ctx context.Context, f *files.Files) error { return f.Edit(ctx, "a.txt", "two", "2", false) }},
		{"delete", "a.txt", del("a.txt")},
		{"delete long", "long.txt", del("long.txt")},
		{"delete link", "link", del("link")},
		{"delete folder", "dir/empty", del("dir/empty")},
		{"mkdir", "made", func(ctx context.Context, f *files.Files) error { return f.Mkdir(ctx, "made", 0) }},
	}, more()...)
}

// more returns the operations that change several entries, and those that
// change something other than content.
func more() []action {
	move := func(from, to string) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Move(ctx, from, to) }
	}
	cp := func(from, to string) func(context.Context, *files.Files) error {
		return func(ctx context.Context, f *files.Files) error { return f.Copy(ctx, from, to) }
	}
	return []action{
		{"delete all", "dir/b.txt", func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "dir") }},
		{"move away", "a.txt", move("a.txt", "new.txt")},
		{"move here", "new.txt", move("a.txt", "new.txt")},
		{"move link", "link", move("link", "dir/link")},
		{"move folder", "dir/b.txt", move("dir", "new")},
		{"copy from", "long.txt", cp("long.txt", "new.txt")},
		{"copy to", "new.txt", cp("a.txt", "new.txt")},
		{"copy folder", "new/b.txt", cp("dir", "new")},
		{"mkdir all", "x/y", func(ctx context.Context, f *files.Files) error { return f.MkdirAll(ctx, "x/y/z", 0o700) }},
		{"chmod", "a.txt", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "a.txt", 0o600) }},
		{"chmod of what only its owner reads", "dir/b.txt", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "dir/b.txt", 0o644) }},
		{"write nothing but bits", "dir/b.txt", func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, "dir/b.txt", []byte("b"), files.WriteOptions{Perm: 0o644})
		}},
		{"chmod folder", "dir/empty", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "dir/empty", 0o700) }},
		{"chmod full folder", "dir", func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "dir", 0o700) }},
		{"symlink", "dir/new", func(ctx context.Context, f *files.Files) error { return f.Symlink(ctx, "../a.txt", "dir/new") }},
		{"append", "a.txt", func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "a.txt", []byte("four")) }},
		{"append to nothing", "new.txt", func(ctx context.Context, f *files.Files) error { return f.Append(ctx, "new.txt", []byte("one")) }},
	}
}

// operations returns all operations, on one path.
func operations(f *files.Files, path string) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"ReadFile": func(ctx context.Context) error { _, err := f.ReadFile(ctx, path); return err },
		"Read":     func(ctx context.Context) error { _, err := f.Read(ctx, path, 0, 0); return err },
		"Stat":     func(ctx context.Context) error { _, err := f.Stat(ctx, path); return err },
		"List":     func(ctx context.Context) error { _, err := f.List(ctx, path); return err },
		"Write":    func(ctx context.Context) error { return f.Write(ctx, path, nil, files.WriteOptions{MakeParents: true}) },
		"Edit":     func(ctx context.Context) error { return f.Edit(ctx, path, "a", "b", true) },
		"Delete":   func(ctx context.Context) error { return f.Delete(ctx, path) },
		"Mkdir":    func(ctx context.Context) error { return f.Mkdir(ctx, path, 0) },

		"Walk": func(ctx context.Context) error { _, err := f.Walk(ctx, path, 1); return err },
		"Search": func(ctx context.Context) error {
			_, err := f.Search(ctx, path, files.Query{Pattern: "x", Page: 1})
			return err
		},
		"DeleteAll": func(ctx context.Context) error { return f.DeleteAll(ctx, path) },
		"Move":      func(ctx context.Context) error { return f.Move(ctx, path, "free") },
		"MoveTo":    func(ctx context.Context) error { return f.Move(ctx, "a.txt", path) },
		"Copy":      func(ctx context.Context) error { return f.Copy(ctx, path, "free") },
		"CopyTo":    func(ctx context.Context) error { return f.Copy(ctx, "a.txt", path) },
		"MkdirAll":  func(ctx context.Context) error { return f.MkdirAll(ctx, path, 0) },
		"Chmod":     func(ctx context.Context) error { return f.Chmod(ctx, path, 0o700) },
		"Symlink":   func(ctx context.Context) error { return f.Symlink(ctx, "x", path) },
		"Append":    func(ctx context.Context) error { return f.Append(ctx, path, nil) },
	}
}

// onLinks reports whether an operation may act on a link itself, or only checks
// whether it exists.
func onLinks(name string) bool {
	return slices.Contains([]string{
		"Stat", "Delete", "DeleteAll", "List", "Walk", "Search", "Mkdir", "MkdirAll", "Move", "MoveTo", "Copy", "CopyTo", "Symlink",
	}, name)
}
