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
	Locked  Layer = "locked"  // by the administrator; no other layer overrides it
	User    Layer = "user"    // by the user
	Preset  Layer = "preset"  // by the organisation: users can set something else
	Default Layer = "default" // by the tool
)

// File is what one layer says of tools. It cannot be changed; the zero File says nothing.
type File struct {
	layer Layer
	name  string
	by    string
	tools map[string]*entry // by name or name@version
	tags  map[string]*entry // for each tool that has the tag and such a setting
}

type entry struct {
	at   string // where it stands
	sets map[string]setting
}

type setting struct {
	value canon.Value
	at    string
	twice string // another tag of the tool has another value there
}

// Read reads a file of one layer, Locked, User or Preset. Name is what errors call it. The error
// tells all that is wrong with it, with line and column.
func Read(layer Layer, name string, text []byte) (File, error) {
	if !slices.Contains([]Layer{Locked, User, Preset}, layer) {
		return File{}, fmt.Errorf("a file of settings is of layer %q, %q or %q, not %q", Locked, User, Preset, layer)
	}
	report := &jsonfile.Report{}
	f := File{layer: layer, name: name, tools: map[string]*entry{}, tags: map[string]*entry{}}
	root := jsonfile.Parse(report, name, text)
	if root.Closed("schemaVersion", "by", "tools", "tags") {
		root.Version("1")
		if by := root.Get("by"); by != nil {
			f.by = by.Text()
		}
		if layer == Locked && f.by == "" {
			root.Refuse(`"by" is missing: whoever is refused is told who locked a setting`)
		}
		groups := root.Get("tags")
		readEntries(groups, f.tags)
		if tools := root.Get("tools"); tools != nil || groups == nil {
			readEntries(root.Need("tools"), f.tools)
		}
	}
	if err := report.Err(); err != nil {
		return File{}, err
	}
	return f, nil
}

func readEntries(n *jsonfile.Node, into map[string]*entry) {
	if n == nil || !n.IsObject() {
		return
	}
	for _, m := range n.Members() {
		into[m.Name] = readEntry(m)
	}
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

// of returns what the file says of a tool: by its name, and what that leaves out by its tags.
func (f File) of(t tool.Tool) *entry {
	named := f.named(t)
	var e *entry
	for _, tag := range t.Spec().Tags {
		group := f.tags[tag]
		for _, p := range t.Spec().Settings {
			s := group.get(p.Name)
			if s == nil || named.get(p.Name) != nil {
				continue
			}
			if e == nil {
				e = named.clone(group.at)
			}
			e.add(p.Name, *s)
		}
	}
	return cmp.Or(e, named)
}

// clone is an entry of its own.
func (e *entry) clone(at string) *entry {
	if e == nil {
		return &entry{at: at, sets: map[string]setting{}}
	}
	return &entry{at: e.at, sets: maps.Clone(e.sets)}
}

// add sets a value that a tag gives. Two tags that give different ones are told of.
func (e *entry) add(name string, s setting) {
	if other, twice := e.sets[name]; twice && string(other.value.Canonical()) != string(s.value.Canonical()) {
		s.twice = other.at
	}
	e.sets[name] = s
}

// named returns what the file says of a tool by its version, or else by its name. What is
// locked for a tool is locked for each version of it, unless that is locked to something else.
func (f File) named(t tool.Tool) *entry {
	own, all := f.tools[t.QualifiedName()], f.tools[t.Name()]
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
	plain := func(entries map[string]*entry) map[string]map[string]canon.Value {
		all := map[string]map[string]canon.Value{}
		for name, e := range entries {
			all[name] = map[string]canon.Value{}
			for setting, s := range e.sets {
				all[name][setting] = s.value
			}
		}
		return all
	}
	doc := struct {
		SchemaVersion int                               `json:"schemaVersion"`
		By            string                            `json:"by,omitempty"`
		Tools         map[string]map[string]canon.Value `json:"tools"`
		Tags          map[string]map[string]canon.Value `json:"tags,omitempty"`
	}{1, f.by, plain(f.tools), plain(f.tags)}
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

// unknownTags are those that no tool has, and settings that no tool with the tag has.
func (f File) unknownTags(report *jsonfile.Report, tools []tool.Tool) {
	for _, tag := range slices.Sorted(maps.Keys(f.tags)) {
		var names []string
		for _, t := range tools {
			if slices.Contains(t.Spec().Tags, tag) {
				for _, p := range t.Spec().Settings {
					names = append(names, p.Name)
				}
			}
		}
		if len(names) == 0 {
			report.Add(jsonfile.Finding{File: f.tags[tag].at, Text: fmt.Sprintf("there is no tool with tag %q that has settings", tag)})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.tags[tag].sets)) {
			if !slices.Contains(names, name) {
				report.Add(jsonfile.Finding{File: f.tags[tag].sets[name].at, Text: fmt.Sprintf("no tool with tag %q has a setting %q", tag, name)})
			}
		}
	}
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
