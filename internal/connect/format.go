package connect

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// server is one server of a table.
type server struct {
	name  string
	at    int    // offset of its name
	raw   string // its text, if it can be moved within the file; else empty
	entry entry
	odd   string // why its entry is unreadable
}

// table is one table of servers in a file.
type table struct {
	path    []string // keys that lead to it
	project string   // project of the servers, if the file has several
	servers []*server
}

func (t *table) find(name string) *server {
	for _, s := range t.servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// serverText is a server to insert into a table: as text, as fields, or as
// JSON.
type serverText struct {
	name  string
	raw   string
	entry entry
	value json.RawMessage
}

func (t serverText) json() json.RawMessage {
	if t.value != nil {
		return t.value
	}
	return t.entry.object()
}

// change removes servers from one table, and inserts others at the place of the
// first.
type change struct {
	path []string
	out  []string
	in   []serverText
}

// layout says where a client's file has its servers.
type layout struct {
	key        string // of the table
	perProject bool   // also in each member of "projects"
}

// format reads and edits the files of one syntax.
type format interface {
	// tables lists the tables of servers, also empty ones.
	tables(body []byte, l layout) ([]*table, error)
	// edit applies changes. It creates a missing table if its parent exists.
	edit(body []byte, changes []change) ([]byte, error)
	// values is all that a text says.
	values(body []byte) (map[string]any, error)
}

// edited makes changes to a file, and compares what it says then with what it should.
func edited(f format, text []byte, changes []change) ([]byte, error) {
	mark, body, err := opened(text)
	if err != nil {
		return nil, err
	}
	after, err := f.edit(body, changes)
	if err != nil {
		return nil, err
	}
	if err := proven(f, body, after, changes); err != nil {
		return nil, err
	}
	return append(slices.Clone(mark), after...), nil
}

// proven: an edit changed the servers that it was to change, and nothing else.
func proven(f format, before, after []byte, changes []change) error {
	was, err := f.values(before)
	if err != nil {
		return err
	}
	is, err := f.values(after)
	if err != nil {
		return &FileError{Text: "it cannot be edited without breaking it; take its servers out of forms on one line, or of dotted keys"}
	}
	for _, c := range changes {
		names := slices.Clone(c.out)
		for _, p := range c.in {
			names = append(names, p.name)
			if at(is, append(slices.Clone(c.path), p.name)) == nil {
				return &FileError{Text: "it cannot be edited so that " + p.name + " is in its place"}
			}
		}
		for _, name := range c.out {
			kept := slices.ContainsFunc(c.in, func(p serverText) bool { return p.name == name })
			if !kept && at(is, append(slices.Clone(c.path), name)) != nil {
				return &FileError{Text: "it cannot be edited so that " + name + " is out of it"}
			}
		}
		without(was, c.path, names)
		without(is, c.path, names)
	}
	if !reflect.DeepEqual(was, is) {
		return &FileError{Text: "it cannot be edited without changing what else it says"}
	}
	return nil
}

func at(v any, path []string) any {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// without takes servers out of what a file says, and a table with them that is empty
// then: in TOML it is there only with what is in it.
func without(v map[string]any, path, names []string) {
	parent, _ := at(v, path[:len(path)-1]).(map[string]any)
	key := path[len(path)-1]
	inner, ok := parent[key].(map[string]any)
	if !ok {
		return
	}
	inner = maps.Clone(inner)
	for _, name := range names {
		delete(inner, name)
	}
	parent[key] = inner
	if len(inner) == 0 {
		delete(parent, key)
	}
}
