package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/tool"
)

// Layer says who set a value.
type Layer string

// The layers, strongest first.
const (
	Locked  Layer = "locked"  // by the administrator: nobody else can set it
	User    Layer = "user"    // by the user
	Default Layer = "default" // by the tool
)

// File is what one layer says of tools. It cannot be changed; the zero File says nothing.
type File struct {
	layer Layer
	name  string
	by    string
	tools map[string]*entry // by name or name@version
}

type entry struct {
	at   string // where it stands
	sets map[string]setting
}

type setting struct {
	value canon.Value
	at    string
}

// Read reads a file of one layer, Locked or User. Name is what errors call it. The error
// tells all that is wrong with it, with line and column.
func Read(layer Layer, name string, text []byte) (File, error) {
	if layer != Locked && layer != User {
		return File{}, fmt.Errorf("a file of settings is of layer %q or %q, not %q", Locked, User, layer)
	}
	report := &jsonfile.Report{}
	f := File{layer: layer, name: name, tools: map[string]*entry{}}
	root := jsonfile.Parse(report, name, text)
	if root.Closed("schemaVersion", "by", "tools") {
		root.Version("1")
		if by := root.Get("by"); by != nil {
			f.by = by.Text()
		}
		if layer == Locked && f.by == "" {
			root.Refuse(`"by" is missing: whoever is refused is told who locked a setting`)
		}
		if tools := root.Need("tools"); tools != nil && tools.IsObject() {
			for _, m := range tools.Members() {
				f.tools[m.Name] = readEntry(m)
			}
		}
	}
	if err := report.Err(); err != nil {
		return File{}, err
	}
	return f, nil
}

func readEntry(n *jsonfile.Node) *entry {
	e := &entry{at: n.Place(), sets: map[string]setting{}}
	if n.IsObject() {
		for _, m := range n.Members() {
			e.sets[m.Name] = setting{value: m.Value, at: m.Place()}
		}
	}
	return e
}

// of returns what the file says of a tool: of its version, or else of its name. What is
// locked for a tool is locked for each version of it, unless that is locked to something else.
func (f File) of(t tool.Tool) *entry {
	own, all := f.tools[t.Ask()], f.tools[t.Name()]
	if own == nil || all == nil || f.layer != Locked {
		return cmp.Or(own, all)
	}
	e := &entry{at: own.at, sets: maps.Clone(own.sets)}
	for _, p := range t.Spec().Settings { // another version may have others
		if s, ok := all.sets[p.Name]; ok && own.get(p.Name) == nil {
			e.sets[p.Name] = s
		}
	}
	return e
}

// JSON writes the file again.
func (f File) JSON() ([]byte, error) {
	tools := map[string]map[string]canon.Value{}
	for name, e := range f.tools {
		tools[name] = map[string]canon.Value{}
		for setting, s := range e.sets {
			tools[name][setting] = s.value
		}
	}
	doc := struct {
		SchemaVersion int                               `json:"schemaVersion"`
		By            string                            `json:"by,omitempty"`
		Tools         map[string]map[string]canon.Value `json:"tools"`
	}{1, f.by, tools}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// with returns the file with one value set, and without it where value is nil.
func (f File) with(name, field string, value *canon.Value) File {
	tools := maps.Clone(f.tools)
	if tools == nil {
		tools = map[string]*entry{}
	}
	e := &entry{at: f.name, sets: map[string]setting{}}
	if old, ok := tools[name]; ok {
		e = &entry{at: old.at, sets: maps.Clone(old.sets)}
	}
	delete(e.sets, field)
	if value != nil {
		e.sets[field] = setting{value: *value, at: f.name}
	}
	tools[name] = e
	f.tools, f.layer = tools, User
	return f
}

// unknownTools are those that a file names and that are not there.
func (f File) unknownTools(report *jsonfile.Report, known []string) {
	for _, name := range slices.Sorted(maps.Keys(f.tools)) {
		if !slices.Contains(known, name) {
			text := fmt.Sprintf("there is no tool %q that has settings", name)
			if len(known) > 0 {
				text += "; there are " + strings.Join(known, ", ")
			}
			report.Add(jsonfile.Finding{File: f.tools[name].at, Text: text})
		}
	}
}
