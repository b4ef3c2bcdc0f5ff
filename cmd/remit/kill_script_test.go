//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// author writes scripts of many calls over every file tool. It keeps the tree in
// mind, so that most of what it writes can be done, and sometimes forgets it.
type author struct {
	r     *rand.Rand
	files map[string]string // content by name
	dirs  []string          // "" is the workspace
	names int
	out   strings.Builder
}

// script writes one of n calls.
func (a *author) script(n int) string {
	for i := 0; i < n; {
		switch {
		case i%40 == 39:
			a.line("savepoint", fmt.Sprint("at ", i))
		case a.r.IntN(20) == 0:
			i += a.parallel()
			continue
		}
		name, args := a.call()
		a.line("", toolCall(name, args))
		i++
	}
	return a.out.String()
}

func toolCall(name string, args map[string]any) map[string]any {
	return map[string]any{"tool": name, "args": args}
}

func (a *author) line(key string, value any) {
	if key != "" {
		value = map[string]any{key: value}
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	a.out.Write(append(text, '\n'))
}

// parallel writes a batch of calls that touch different files.
func (a *author) parallel() int {
	var batch []any
	for range 3 {
		name, content := a.fresh(a.dir(), ".txt"), a.text()
		a.files[name] = content
		batch = append(batch, toolCall("file_write", map[string]any{"path": name, "content": content}))
	}
	a.line("parallel", batch)
	return len(batch)
}

func (a *author) call() (string, map[string]any) {
	for {
		switch a.r.IntN(16) {
		case 0, 1, 2:
			name := a.fresh(a.dir(), ".txt")
			a.files[name] = a.text()
			args := map[string]any{"path": name, "content": a.files[name]}
			if a.r.IntN(3) == 0 {
				args["mode"] = []string{"0600", "0644", "0755"}[a.r.IntN(3)]
			}
			if a.r.IntN(3) == 0 {
				args["if_absent"] = true
			}
			return "file_write", args
		case 3, 4:
			if name, ok := a.file(); ok {
				a.files[name] = a.text()
				return "file_write", map[string]any{"path": name, "content": a.files[name]}
			}
		case 5, 6:
			if name, ok := a.file(); ok {
				old := a.files[name]
				a.files[name] = strings.ReplaceAll(old, "line 1 ", "LINE ")
				return "file_edit", map[string]any{"path": name, "old": "line 1 ", "new": "LINE ", "all": true}
			}
		case 7:
			name := a.fresh(a.dir(), "")
			a.dirs = append(a.dirs, name)
			return "dir_create", map[string]any{"path": name}
		case 8, 9:
			if from, ok := a.file(); ok {
				to := a.fresh(a.dir(), ".txt")
				a.files[to] = a.files[from]
				if a.r.IntN(2) == 0 {
					return "file_copy", map[string]any{"from": from, "to": to}
				}
				delete(a.files, from)
				return "file_move", map[string]any{"from": from, "to": to}
			}
		case 10:
			if from := a.dir(); from != "" {
				to := a.fresh("", "")
				name := []string{"file_copy", "file_move"}[a.r.IntN(2)]
				a.carry(from, to, name == "file_move")
				return name, map[string]any{"from": from, "to": to}
			}
		case 11:
			if name, ok := a.file(); ok && len(a.files) > 8 {
				delete(a.files, name)
				return "file_delete", map[string]any{"path": name}
			}
		case 12:
			if top := a.dir(); top != "" && len(a.files) > 8 && a.r.IntN(2) == 0 {
				a.carry(top, "", true)
				return "file_delete", map[string]any{"path": top, "recursive": true}
			}
		case 13:
			if name, ok := a.file(); ok {
				return "file_read", map[string]any{"path": name}
			}
		case 14:
			return "file_list", map[string]any{"recursive": true}
		case 15:
			return "file_search", map[string]any{"pattern": "LINE|line 2"}
		}
	}
}

// carry copies what lies below a folder in mind, to nowhere where to is empty.
func (a *author) carry(from, to string, gone bool) {
	for name, content := range a.files {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			if to != "" {
				a.files[path.Join(to, rest)] = content
			}
			if gone {
				delete(a.files, name)
			}
		}
	}
	var dirs []string
	for _, d := range a.dirs {
		below := d == from || strings.HasPrefix(d, from+"/")
		if below && to != "" {
			dirs = append(dirs, path.Join(to, strings.TrimPrefix(d, from)))
		}
		if !below || !gone {
			dirs = append(dirs, d)
		}
	}
	a.dirs = dirs
}

func (a *author) fresh(dir, ext string) string {
	a.names++
	return path.Join(dir, fmt.Sprintf("n%d%s", a.names, ext))
}

func (a *author) dir() string { return a.dirs[a.r.IntN(len(a.dirs))] }

func (a *author) file() (string, bool) {
	var names []string
	for name := range a.files {
		names = append(names, name)
	}
	if len(names) == 0 {
		return "", false
	}
	slices.Sort(names)
	return names[a.r.IntN(len(names))], true
}

func (a *author) text() string {
	var b strings.Builder
	lines := 1 + a.r.IntN(6)
	if a.r.IntN(12) == 0 {
		lines = 6000 // larger than what a journal keeps inline
	}
	a.names++
	for i := range lines {
		fmt.Fprintf(&b, "line %d of %d\n", i, a.names)
	}
	return b.String()
}
