package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlFormat is TOML.
type tomlFormat struct{}

func (tomlFormat) values(body []byte) (v map[string]any, err error) {
	err = toml.Unmarshal(body, &v)
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := bad.Position()
		return nil, &FileError{Line: line, Column: column, Text: strings.TrimPrefix(bad.Error(), "toml: ")}
	}
	if err != nil {
		return nil, &FileError{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	}
	return v, nil
}

// expression is a header, or a key with its value, with the lines that it
// occupies.
type expression struct {
	path     []string
	header   bool
	at, name int // offsets of its key and of the part that names a server
	from, to int // offsets of its lines
}

// expressions lists the expressions of a valid text.
func expressions(body []byte) (all []expression) {
	p := unstable.Parser{}
	p.Reset(body)
	var in []string // the table of the keys
	for p.NextExpression() {
		node := p.Expression()
		var e expression
		end := 0
		for keys := node.Key(); keys.Next(); {
			key := keys.Node()
			offset := int(key.Raw.Offset)
			if len(e.path) == 0 {
				e.at, e.name = offset, offset
			} else if len(e.path) == 1 && (len(in) == 0 || node.Kind != unstable.KeyValue) {
				e.name = offset
			}
			e.path = append(e.path, string(key.Data))
			end = int(key.Raw.Offset + key.Raw.Length)
		}
		if e.header = node.Kind != unstable.KeyValue; e.header {
			in = e.path
		} else {
			e.path = append(slices.Clone(in), e.path...)
			end = int(node.Raw.Offset + node.Raw.Length)
		}
		e.from = bytes.LastIndexByte(body[:e.at], '\n') + 1
		e.to = len(body)
		if n := bytes.IndexByte(body[end:], '\n'); n >= 0 {
			e.to = end + n + 1
		}
		all = append(all, e)
	}
	return all
}

// run is a sequence of lines of one server, with what is between them.
type run struct {
	name     string
	at       int // offset of its name
	from, to int
	header   bool // starts with a header, so that it means the same elsewhere
}

// runs lists the runs of a table's servers, in the order of the file.
func runs(body []byte, key string) (all []run, err error) {
	var header []string
	before := ""
	for _, e := range expressions(body) {
		if e.header {
			header = e.path
		}
		name := ""
		if len(e.path) >= 2 && e.path[0] == key {
			name = e.path[1]
		} else if e.path[0] == key && !e.header {
			return nil, refuse(body, e.at, "%q is written on one line; write each server as a table of its own, [%s.NAME]", key, key)
		}
		// A key follows its header. A key under [mcp_servers] or before all
		// headers is a run by itself.
		under := !e.header && len(header) >= 2 && header[0] == key
		switch n := len(all) - 1; {
		case name == "":
		case n >= 0 && before == name && all[n].header && (e.header || under):
			all[n].to = e.to
		default:
			all = append(all, run{name, e.name, e.from, e.to, e.header})
		}
		before = name
	}
	return all, nil
}

func (f tomlFormat) tables(body []byte, l layout) ([]*table, error) {
	values, err := f.values(body)
	if err != nil {
		return nil, err
	}
	all, err := runs(body, l.key)
	if err != nil {
		return nil, err
	}
	t := &table{path: []string{l.key}}
	for _, r := range all {
		s := t.find(r.name)
		if s == nil {
			s = &server{name: r.name, at: r.at}
			s.entry, s.odd = tomlEntry(at(values, []string{l.key, r.name}))
			t.servers = append(t.servers, s)
			s.raw = string(body[r.from:r.to])
		} else {
			s.raw += "\n" + string(body[r.from:r.to])
		}
		if !r.header {
			s.raw = "" // it has another meaning elsewhere
		}
	}
	for _, s := range t.servers {
		alone := func(r run) bool { return r.name == s.name && !r.header }
		if slices.ContainsFunc(all, alone) {
			s.raw = ""
		}
	}
	return []*table{t}, nil
}

// tomlEntry returns a server's entry: first the members that start it, then the
// others by name, as the library does not keep the order.
func tomlEntry(v any) (e entry, odd string) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, "its entry is not a table"
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	place := func(name string) int {
		if i := slices.Index(launches, name); i >= 0 {
			return i
		}
		return len(launches)
	}
	slices.SortFunc(names, func(a, b string) int {
		if c := place(a) - place(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if _, err := json.Marshal(m[name]); err != nil {
			return nil, "its member " + name + " cannot be written as JSON"
		}
		e = append(e, field{name, marshal(m[name])})
	}
	return e, ""
}

func (f tomlFormat) edit(body []byte, changes []change) ([]byte, error) {
	var all []splice
	for _, c := range changes {
		some, err := f.change(body, c)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return spliced(body, all), nil
}

func (tomlFormat) change(body []byte, c change) (all []splice, err error) {
	servers, err := runs(body, c.path[0])
	if err != nil {
		return nil, err
	}
	end := lineEnd(body)
	text := tomlPieces(c.path[0], c.in, end)
	for _, r := range servers {
		if !slices.Contains(c.out, r.name) {
			continue
		}
		if text != "" && r.header {
			all = append(all, splice{r.from, r.to, likeLast(text, body[r.from:r.to])})
			text = ""
			continue
		}
		all = append(all, splice{r.from, withBlank(body, r.from, r.to), ""})
	}
	if text != "" {
		all = append(all, splice{len(body), len(body), separated(body, text, end)})
	}
	return all, nil
}

// likeLast ends a text with a line break only if the replaced text does.
func likeLast(text string, was []byte) string {
	if bytes.HasSuffix(was, []byte("\n")) {
		return text
	}
	return strings.TrimRight(text, "\r\n")
}

// withBlank returns the end of removed lines. It includes the empty line behind
// them if there is also one before them.
func withBlank(body []byte, from, to int) int {
	line := body[to:]
	n := bytes.IndexByte(line, '\n')
	before := bytes.TrimRight(body[:from], " \t\r")
	before, _ = bytes.CutSuffix(before, []byte("\n"))
	before = bytes.TrimRight(before, " \t\r")
	if n >= 0 && blank(line[:n]) && (len(before) == 0 || before[len(before)-1] == '\n') {
		return to + n + 1
	}
	return to
}

// separated returns a text to append behind all others, after an empty line.
func separated(body []byte, text, end string) string {
	switch {
	case len(body) == 0:
		return text
	case bytes.HasSuffix(body, []byte("\n")):
		return end + text
	default:
		return end + end + text
	}
}

// tomlPieces encodes servers as separate tables.
func tomlPieces(key string, in []serverText, end string) string {
	var texts []string
	for _, p := range in {
		raw := p.raw
		if raw == "" {
			raw = "[" + tomlKey(key) + "." + tomlKey(p.name) + "]\n"
			for _, f := range p.entry {
				raw += tomlKey(f.Name) + " = " + tomlValue(decoded(f.Value)) + "\n"
			}
		}
		texts = append(texts, strings.TrimRight(raw, "\r\n")+"\n")
	}
	return withLineEnd(strings.Join(texts, "\n"), end)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return tomlText(name)
}

// tomlText encodes a string. TOML has the escapes of JSON, and needs one more.
func tomlText(s string) string {
	return strings.ReplaceAll(string(marshal(s)), "\x7f", `\u007f`)
}

// tomlValue encodes a JSON value. A null, which TOML lacks, cannot come from
// TOML.
func tomlValue(v any) string {
	switch v := v.(type) {
	case string:
		return tomlText(v)
	case []any:
		var texts []string
		for _, e := range v {
			texts = append(texts, tomlValue(e))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case map[string]any:
		var texts []string
		e, _ := tomlEntry(v)
		for _, f := range e {
			texts = append(texts, tomlKey(f.Name)+" = "+tomlValue(decoded(f.Value)))
		}
		if len(texts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(texts, ", ") + " }"
	default:
		return string(marshal(v))
	}
}
