package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFormat is JSON, with optional comments and trailing commas.
type jsonFormat struct{}

const maxDepth = 1000

var (
	hujsonPlace = regexp.MustCompile(`^hujson: line (\d+), column (\d+): (.*)`)
	hujsonValue = regexp.MustCompile(`(?s)^invalid literal: .*`)
)

// parseJSON parses a text into the tree that edits use, and returns the offset
// of its object.
func parseJSON(body []byte) (root *hujson.Object, at int, err error) {
	if offset := tooDeep(body); offset >= 0 {
		return nil, 0, refuse(body, offset, "it is nested more than %d deep here", maxDepth)
	}
	// The last line can be a comment without a line end.
	v, err := hujson.Parse(append(slices.Clip(body), '\n'))
	if err != nil {
		return nil, 0, unreadableJSON(body, err)
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, 0, refuse(body, v.StartOffset, "it is not an object")
	}
	return root, v.StartOffset, nil
}

// unreadableJSON adds the position to an error of the library, and removes the
// value that the error repeats.
func unreadableJSON(body []byte, err error) error {
	m := hujsonPlace.FindStringSubmatch(err.Error())
	if m == nil {
		return &FileError{Text: "it is not JSON"}
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	offset := 0
	for range line - 1 {
		n := bytes.IndexByte(body[offset:], '\n')
		if n < 0 {
			return refuse(body, len(body), "%s", m[3]) // at the end
		}
		offset += n + 1
	}
	return refuse(body, offset+column-1, "%s", hujsonValue.ReplaceAllString(m[3], "it is no valid value"))
}

// tooDeep returns the offset at which a text is nested deeper than a recursive
// parser can handle, or -1. It skips strings and comments.
func tooDeep(body []byte) int {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case '/':
			end := ""
			if bytes.HasPrefix(body[i:], []byte("//")) {
				end = "\n"
			} else if bytes.HasPrefix(body[i:], []byte("/*")) {
				end = "*/"
			}
			if end != "" {
				n := bytes.Index(body[i+2:], []byte(end))
				if n < 0 {
					return -1
				}
				i += 1 + n + len(end)
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// member finds a member that must not occur twice.
func member(body []byte, obj *hujson.Object, name string) (*hujson.ObjectMember, error) {
	var found *hujson.ObjectMember
	for i, m := range obj.Members {
		if nameOf(m) != name {
			continue
		}
		if found != nil {
			return nil, refuse(body, m.Name.StartOffset, "%q is there twice: keep one of them", name)
		}
		found = &obj.Members[i]
	}
	return found, nil
}

func nameOf(m hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal) // names of members are literals
	return name.String()
}

// inner returns the object in a member. It returns nil for a missing member and
// for null.
func inner(body []byte, obj *hujson.Object, name string) (*hujson.Object, error) {
	m, err := member(body, obj, name)
	if err != nil || m == nil {
		return nil, err
	}
	if lit, ok := m.Value.Value.(hujson.Literal); ok && string(lit) == "null" {
		return nil, nil
	}
	o, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return nil, refuse(body, m.Value.StartOffset, "%q is not an object", name)
	}
	return o, nil
}

func (jsonFormat) tables(body []byte, l layout) (all []*table, err error) {
	root, _, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	add := func(obj *hujson.Object, project string, path ...string) error {
		servers, err := inner(body, obj, l.key)
		if err != nil || servers == nil {
			return err
		}
		t := &table{path: append(path, l.key), project: project}
		t.servers, err = serversOf(body, servers)
		all = append(all, t)
		return err
	}
	if err := add(root, ""); err != nil || !l.perProject {
		return all, err
	}
	projects, err := inner(body, root, "projects")
	if err != nil || projects == nil {
		return all, err
	}
	for _, m := range projects.Members {
		name := nameOf(m)
		project, err := inner(body, projects, name)
		if err != nil {
			return nil, err
		}
		if project == nil {
			continue
		}
		if err := add(project, name, "projects", name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func serversOf(body []byte, obj *hujson.Object) (all []*server, err error) {
	for _, m := range obj.Members {
		s := &server{name: nameOf(m), at: m.Name.StartOffset}
		if _, err := member(body, obj, s.name); err != nil {
			return nil, err
		}
		s.raw = string(body[m.Name.StartOffset:m.Value.EndOffset])
		fields, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			s.odd = "its entry is not an object"
			all = append(all, s)
			continue
		}
		for _, f := range fields.Members {
			if _, err := member(body, fields, nameOf(f)); err != nil {
				return nil, err
			}
			value := f.Value.Clone()
			value.Minimize()
			s.entry = append(s.entry, field{nameOf(f), value.Pack()})
		}
		all = append(all, s)
	}
	return all, nil
}

func (jsonFormat) values(body []byte) (v map[string]any, err error) {
	standard, err := hujson.Standardize(append(bytes.Clone(body), '\n'))
	if err != nil {
		return nil, unreadableJSON(body, err)
	}
	dec := json.NewDecoder(bytes.NewReader(standard))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func (jsonFormat) edit(body []byte, changes []change) ([]byte, error) {
	root, at, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	e := jsonEdit{body: body, end: lineEnd(body), unit: indentUnit(root)}
	for _, c := range changes {
		if err := e.change(root, at, c); err != nil {
			return nil, err
		}
	}
	return spliced(body, e.splices), nil
}

// jsonEdit collects the splices of one edit.
type jsonEdit struct {
	body      []byte
	end, unit string // line end, and one step of indentation
	splices   []splice
}

func (e *jsonEdit) change(parent *hujson.Object, from int, c change) error {
	for i, key := range c.path {
		m, err := member(e.body, parent, key)
		if err != nil {
			return err
		}
		if m == nil {
			if i < len(c.path)-1 {
				return &FileError{Text: fmt.Sprintf("%q is not there any more", strings.Join(c.path[:i+1], " "))}
			}
			e.append(parent, from, []serverText{{name: key, entry: objectOf(c.in)}})
			return nil
		}
		obj, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			return refuse(e.body, m.Value.StartOffset, "%q is not an object", key)
		}
		parent, from = obj, m.Value.StartOffset
	}
	e.swap(parent, from, c)
	return nil
}

// objectOf returns a table with some servers, as an entry of its parent.
func objectOf(in []serverText) (e entry) {
	for _, p := range in {
		e = append(e, field{p.name, p.json()})
	}
	return e
}

// swap edits the members of one object.
func (e *jsonEdit) swap(obj *hujson.Object, from int, c change) {
	gone := make([]bool, len(obj.Members))
	first, last := -1, -1 // first removed, last remaining
	for i, m := range obj.Members {
		if gone[i] = slices.Contains(c.out, nameOf(m)); gone[i] && first < 0 {
			first = i
		}
	}
	switch {
	case first < 0 && len(c.in) > 0:
		e.append(obj, from, c.in)
	case first >= 0 && len(c.in) > 0:
		m := obj.Members[first]
		gone[first] = false
		e.put(m.Name.StartOffset, m.Value.EndOffset, e.joined(obj, from, c.in))
	}
	for i := range gone {
		if !gone[i] {
			last = i
		}
	}
	if last < 0 && e.clear(obj) {
		return
	}
	n := len(obj.Members)
	for i, m := range obj.Members {
		comma := i < n-1 || m.Value.AfterExtra != nil
		if gone[i] {
			e.cut(m, comma, i == n-1 || !gone[i+1])
			continue
		}
		// The new last member has a comma only if the old one had.
		if i == last && i < n-1 && obj.Members[n-1].Value.AfterExtra == nil {
			at := m.Value.EndOffset + len(m.Value.AfterExtra)
			e.put(at, at+1, "")
		}
	}
}

func (e *jsonEdit) put(from, to int, text string) {
	e.splices = append(e.splices, splice{from, to, text})
}

// clear empties an object without comments.
func (e *jsonEdit) clear(obj *hujson.Object) bool {
	n := len(obj.Members)
	if n == 0 {
		return true
	}
	for _, m := range obj.Members {
		if !blank(m.Name.BeforeExtra) || !blank(m.Value.AfterExtra) {
			return false
		}
	}
	if !blank(obj.AfterExtra) {
		return false
	}
	first, last := obj.Members[0].Name, obj.Members[n-1].Value
	to := last.EndOffset + len(last.AfterExtra) + len(obj.AfterExtra)
	if last.AfterExtra != nil {
		to++ // the comma
	}
	e.put(first.StartOffset-len(first.BeforeExtra), to, "")
	return true
}

// cut removes a member with its comma and the white space before it. Comments
// stay. The line break after a comment goes only if another one follows that
// stays.
func (e *jsonEdit) cut(m hujson.ObjectMember, comma, stays bool) {
	from, to := m.Name.StartOffset, m.Value.EndOffset+len(m.Value.AfterExtra)
	if comma {
		e.put(to, to+1, "")
		to++
	}
	rest, _, more := bytes.Cut(e.body[to:], []byte("\n"))
	switch before := m.Name.BeforeExtra; {
	case blank(before):
		from -= len(before)
	case blank(rest): // nothing else is on its line
		kept := bytes.TrimRight(before, " \t")
		if more && stays {
			kept = bytes.TrimSuffix(bytes.TrimSuffix(kept, []byte("\n")), []byte("\r"))
		}
		from -= len(before) - len(kept)
	}
	e.put(from, m.Value.EndOffset, "")
}

// append adds members behind the last one of an object.
func (e *jsonEdit) append(obj *hujson.Object, from int, in []serverText) {
	text := e.joined(obj, from, in)
	indent, lines := e.indent(obj, from)
	if n := len(obj.Members); n > 0 {
		separator := ","
		if lines {
			separator += e.end + indent
		} else {
			separator += " "
		}
		at := obj.Members[n-1].Value.EndOffset
		e.put(at, at, separator+text)
		return
	}
	outer := strings.TrimSuffix(indent, e.unit)
	kept := bytes.TrimRight(obj.AfterExtra, " \t\r\n") // comments
	e.put(from+1+len(kept), from+1+len(obj.AfterExtra), e.end+indent+text+e.end+outer)
}

// indent returns the indentation of an object's members. Lines reports whether
// each is on its own line.
func (e *jsonEdit) indent(obj *hujson.Object, from int) (indent string, lines bool) {
	if len(obj.Members) > 0 {
		return lastLine(obj.Members[0].Name.BeforeExtra)
	}
	begin := bytes.LastIndexByte(e.body[:from], '\n') + 1
	line := e.body[begin:from]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]) + e.unit, true
}

// lastLine returns the text after the last line break of white space and
// comments.
func lastLine(extra hujson.Extra) (indent string, found bool) {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 {
		return "", false
	}
	after := extra[i+1:]
	return string(after[:len(after)-len(bytes.TrimLeft(after, " \t"))]), true
}

// joined encodes members.
func (e *jsonEdit) joined(obj *hujson.Object, from int, in []serverText) string {
	indent, lines := e.indent(obj, from)
	var texts []string
	for _, p := range in {
		if p.raw != "" {
			texts = append(texts, p.raw)
			continue
		}
		texts = append(texts, e.member(p, indent, lines))
	}
	if !lines {
		return strings.Join(texts, ", ")
	}
	return strings.Join(texts, ","+e.end+indent)
}

func (e *jsonEdit) member(p serverText, indent string, lines bool) string {
	return string(marshal(p.name)) + ": " + e.value(p.json(), indent, lines)
}
