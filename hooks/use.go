package hooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// toolKind is what a client's own tool does.
type toolKind string

const (
	shellKind  toolKind = "shell"
	writeKind  toolKind = "write"
	editKind   toolKind = "edit"
	readKind   toolKind = "read"
	searchKind toolKind = "search"
	fetchKind  toolKind = "fetch"
	innerKind  toolKind = "inner" // acts only inside the client, or by other uses
	otherKind  toolKind = ""      // everything else, such as tools of MCP servers
)

// use is one use of a client's tool, as the arguments of a call.
type use struct {
	kind toolKind
	args map[string]any
	// Shell.
	command    string
	background bool
}

// maxContent bounds the content of a file in the arguments of a call, in bytes.
// The file itself is saved whole.
const maxContent = 64 << 10

// useOf translates the input of a client's tool.
func (c Client) useOf(e Event, root string) use {
	kind := c.tools[e.Tool]
	u := use{kind: kind, args: map[string]any{"client": c.Name, "tool": e.Tool}}
	if e.Agent != "" {
		u.args["agent"] = e.Agent
	}
	in := newInput(e.Input, root, e.Dir)
	switch kind {
	case shellKind:
		u.shell(in)
	case writeKind:
		u.args["paths"] = in.paths("file_path", "path", "filePath", "absolute_path")
		u.content("content", in.text("content", "contents", "file_text"))
	case editKind:
		u.edit(in)
	case readKind, searchKind:
		u.args["paths"] = in.paths("file_path", "path", "filePath", "absolute_path", "dir_path", "paths", "target_file")
		u.optional("pattern", in.text("pattern", "query", "glob"))
	case fetchKind:
		u.optional("url", in.text("url"))
		u.optional("query", in.text("query", "prompt"))
	default:
		u.args["input"] = in.whole()
	}
	return u
}

func (u *use) optional(name, text string) {
	if text != "" {
		u.content(name, text)
	}
}

// content sets an argument to a text, or to its beginning.
func (u *use) content(name, text string) {
	if len(text) > maxContent {
		text = strings.ToValidUTF8(text[:maxContent], "")
		u.args["cut"] = true
	}
	u.args[name] = strings.ToValidUTF8(text, string(utf8.RuneError))
}

func (u *use) shell(in input) {
	u.command = in.text("command", "cmd")
	if u.command == "" {
		u.command = strings.Join(in.texts("command"), " ")
	}
	u.background = in.flag("run_in_background", "is_background", "background")
	u.args["command"] = u.command
	u.args["cwd"] = in.place(in.dir)
	if dir := in.text("workdir", "dir_path", "directory", "working_directory"); dir != "" {
		u.args["cwd"] = in.place(in.absolute(dir))
	}
	if u.background {
		u.args["background"] = true
	}
}

// edit collects the files of an edit. A patch names them itself.
func (u *use) edit(in input) {
	paths := in.paths("file_path", "path", "filePath", "notebook_path", "absolute_path", "target_file")
	if patch := in.text("command", "patch", "input", "patchText"); patch != "" && len(paths) == 0 {
		for _, name := range patchedFiles(patch) {
			paths = append(paths, in.place(in.absolute(name)))
		}
		u.content("patch", patch)
	}
	slices.Sort(paths)
	u.args["paths"] = slices.Compact(paths)
	before, after := in.edits()
	u.optional("new", after)
	u.optional("old", before)
}

// edits returns the text that an edit replaces, and the new one. Several edits
// of one use follow each other, so that a policy sees all of them.
func (in input) edits() (before, after string) {
	var several []json.RawMessage
	_ = json.Unmarshal(in.members["edits"], &several) // anything else has no edits
	for _, raw := range append([]json.RawMessage{in.raw}, several...) {
		one := newInput(raw, in.root, in.dir)
		before = joined(before, one.text("old_string", "oldString"))
		after = joined(after, one.text("new_string", "newString", "new_source"))
	}
	return before, after
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// patchedFiles returns the files that a patch of Codex names.
func patchedFiles(patch string) (names []string) {
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(line, head); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
	}
	return names
}

// input reads the input of a tool by the names that clients use.
type input struct {
	raw       json.RawMessage
	members   map[string]json.RawMessage
	root, dir string
}

func newInput(raw json.RawMessage, root, dir string) input {
	in := input{raw: raw, root: root, dir: dir}
	_ = json.Unmarshal(raw, &in.members) // anything else has no members
	return in
}

// text returns the first of some members that is a text.
func (in input) text(names ...string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(in.members[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

func (in input) texts(name string) (list []string) {
	_ = json.Unmarshal(in.members[name], &list)
	return list
}

func (in input) flag(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return string(in.members[name]) == "true" })
}

// whole returns the input itself, or a text if it is too long.
func (in input) whole() any {
	var v any
	if len(in.raw) > maxContent || json.Unmarshal(in.raw, &v) != nil {
		return strings.ToValidUTF8(string(in.raw[:min(len(in.raw), maxContent)]), "")
	}
	return v
}

// paths returns the files that members name, relative to the root if they lie
// in it, else absolute.
func (in input) paths(names ...string) []string {
	paths := []string{}
	for _, name := range names {
		if text := in.text(name); text != "" {
			paths = append(paths, in.place(in.absolute(text)))
		}
		for _, text := range in.texts(name) {
			paths = append(paths, in.place(in.absolute(text)))
		}
	}
	return paths
}

func (in input) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(in.dir, name)
}

// place returns a path relative to the root, with slashes, if it lies in the
// root after all links. Otherwise it returns the real path, which is absolute.
func (in input) place(name string) string {
	if name == "" {
		return "."
	}
	real := resolved(name)
	rel, err := filepath.Rel(in.root, real)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(real)
	}
	return filepath.ToSlash(rel)
}

// resolved returns a path without links, as far as it exists. A link whose
// target is missing counts as its target: a write follows it.
func resolved(path string) string { return resolvedIn(filepath.Clean(path), 40) }

// resolvedIn follows at most n missing targets, as the kernel does.
func resolvedIn(path string, n int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	up := filepath.Dir(path)
	if up == path {
		return path
	}
	up = resolvedIn(up, n)
	path = filepath.Join(up, filepath.Base(path))
	target, err := os.Readlink(path)
	if err != nil || n == 0 {
		return path
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(up, target)
	}
	return resolvedIn(filepath.Clean(target), n-1)
}
