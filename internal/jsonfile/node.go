package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/suggest"
)

// MaxBytes is how long a file may be.
const MaxBytes = 1 << 20

const maxDepth = 64

// Node is one value of a file. Its methods take a nil Node for a value that is not there,
// which has been told of already.
type Node struct {
	Name  string      // of the member that it is
	Value canon.Value // what it is

	doc      *document
	at, key  int // bytes into the file, of the value and of the member's name
	members  []*Node
	elements []*Node
}

type document struct {
	name   string
	text   []byte
	report *Report
}

func (d *document) refuse(offset int, text string) {
	offset = min(max(offset, 0), len(d.text))
	before := d.text[:offset]
	line := bytes.Count(before, []byte("\n"))
	begin := bytes.LastIndexByte(before, '\n') + 1
	d.report.Add(Finding{File: d.name, Line: line + 1, Column: utf8.RuneCount(before[begin:]) + 1, Text: text})
}

// Parse reads a file. Where it is not strict JSON the report says so, and there is no
// Node.
func Parse(r *Report, name string, text []byte) *Node {
	d := &document{name: name, text: text, report: r}
	value, err := canon.Parse(text, canon.Limits{Bytes: MaxBytes, Depth: maxDepth})
	bad, known := errors.AsType[*canon.ParseError](err)
	switch {
	case err == nil:
	case !known:
		r.Add(Finding{File: name, Text: err.Error()})
		return nil
	case bad.Offset >= 0:
		d.refuse(bad.Offset, bad.Text)
		return nil
	case len(bad.Tokens) == 0:
		r.Add(Finding{File: name, Text: bad.Text})
		return nil
	}
	before := r.Len()
	root := d.read()
	if root == nil || r.Len() > before || err != nil {
		if r.Len() == before { // a document that has a member twice, and is broken behind it
			r.Add(Finding{File: name, Text: err.Error()})
		}
		return nil
	}
	root.fill(value)
	return root
}

// read finds where everything stands, and which members are there twice.
func (d *document) read() *Node {
	dec := jsontext.NewDecoder(bytes.NewReader(d.text), jsontext.AllowDuplicateNames(true))
	n, err := d.next(dec)
	if err != nil {
		return nil
	}
	return n
}

func (d *document) next(dec *jsontext.Decoder) (n *Node, err error) {
	n = &Node{doc: d}
	switch kind := dec.PeekKind(); kind {
	case '{', '[':
		if _, err = dec.ReadToken(); err != nil {
			return nil, err
		}
		n.at = int(dec.InputOffset()) - 1
		for dec.PeekKind() != kind+2 { // its other bracket, in ASCII
			if err = d.inside(dec, n, kind == '{'); err != nil {
				return nil, err
			}
		}
		_, err = dec.ReadToken()
	default:
		n.at, _, err = d.scalar(dec)
	}
	return n, err
}

func (d *document) scalar(dec *jsontext.Decoder) (at int, raw jsontext.Value, err error) {
	if raw, err = dec.ReadValue(); err != nil {
		return 0, nil, err
	}
	return int(dec.InputOffset()) - len(raw), raw, nil
}

func (d *document) inside(dec *jsontext.Decoder, n *Node, member bool) error {
	if !member {
		e, err := d.next(dec)
		if err == nil {
			e.key, e.Name = e.at, strconv.Itoa(len(n.elements))
			n.elements = append(n.elements, e)
		}
		return err
	}
	at, raw, err := d.scalar(dec)
	if err != nil {
		return err
	}
	name, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return err
	}
	m, err := d.next(dec)
	if err != nil {
		return err
	}
	m.Name, m.key = string(name), at
	if n.Get(m.Name) != nil {
		d.refuse(at, fmt.Sprintf("%s is there twice, want each name once", quoted(m.Name)))
	}
	n.members = append(n.members, m)
	return nil
}

func (n *Node) fill(v canon.Value) {
	n.Value = v
	for _, m := range n.members {
		value, _ := v.Get(m.Name)
		m.fill(value)
	}
	i := 0
	for _, e := range v.Elements() {
		n.elements[i].fill(e)
		i++
	}
}

// quoted is a name as a message shows it, cut where it is long.
func quoted(name string) string {
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	return strconv.Quote(name)
}

// Place is where the value stands.
func (n *Node) Place() string {
	if n == nil {
		return ""
	}
	at := document{name: n.doc.name, text: n.doc.text, report: &Report{}}
	at.refuse(n.at, "")
	return at.report.all[0].Place()
}

// Refuse says what is wrong with the value.
func (n *Node) Refuse(format string, args ...any) {
	if n != nil {
		n.doc.refuse(n.at, fmt.Sprintf(format, args...))
	}
}

// RefuseName says what is wrong with the member, at its name.
func (n *Node) RefuseName(format string, args ...any) {
	if n != nil {
		n.doc.refuse(n.key, fmt.Sprintf(format, args...))
	}
}

// Get returns a member, nil where it is not there.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Need returns a member that has to be there.
func (n *Node) Need(name string) *Node {
	m := n.Get(name)
	if n != nil && m == nil && n.Value.Kind() == canon.Object {
		n.Refuse("%s is missing", quoted(name))
	}
	return m
}

// Members are those of an object, in the order of the file.
func (n *Node) Members() []*Node {
	if n == nil {
		return nil
	}
	return n.members
}

// Elements are those of an array.
func (n *Node) Elements() []*Node {
	if n == nil {
		return nil
	}
	return n.elements
}

// Under returns the value that tokens lead to, or the last one on the way there.
func (n *Node) Under(tokens []string) *Node {
	for _, token := range tokens {
		inner := n.Get(token)
		if i, err := strconv.Atoi(token); inner == nil && err == nil && i >= 0 && i < len(n.Elements()) {
			inner = n.elements[i]
		}
		if inner == nil {
			break
		}
		n = inner
	}
	return n
}

// Closed refuses a value that is no object, and every member of it that is not among
// these. It reports whether the value is an object.
func (n *Node) Closed(known ...string) bool {
	if !n.is(canon.Object) {
		return false
	}
	for _, m := range n.members {
		if slices.Contains(known, m.Name) {
			continue
		}
		if near := suggest.Name(m.Name, known); near != "" {
			m.RefuseName("unknown member %s; did you mean %q?", quoted(m.Name), near)
			continue
		}
		m.RefuseName("unknown member %s; valid are %s", quoted(m.Name), strings.Join(known, ", "))
	}
	return true
}

// is refuses a value of another kind.
func (n *Node) is(kind canon.Kind) bool {
	if n == nil {
		return false
	}
	if got := n.Value.Kind(); got != kind {
		n.Refuse("%s is %s, want %s", n.what(), article(got), article(kind))
		return false
	}
	return true
}

// IsObject refuses what is none.
func (n *Node) IsObject() bool { return n.is(canon.Object) }

func (n *Node) what() string {
	if n.Name == "" {
		return "the file"
	}
	if _, err := strconv.Atoi(n.Name); err == nil {
		return "the element"
	}
	return quoted(n.Name)
}

func article(k canon.Kind) string {
	switch k {
	case canon.Array, canon.Object:
		return "an " + k.String()
	case canon.Null, canon.Invalid:
		return k.String()
	default:
		return "a " + k.String()
	}
}

// Text returns a string.
func (n *Node) Text() string {
	if !n.is(canon.String) {
		return ""
	}
	return n.Value.Text()
}

// Bool returns true or false.
func (n *Node) Bool() bool { return n.is(canon.Bool) && n.Value.Bool() }

// Texts returns an array of strings, nil where it is not there.
func (n *Node) Texts() []string {
	if !n.is(canon.Array) {
		return nil
	}
	out := []string{}
	for _, e := range n.elements {
		out = append(out, e.Text())
	}
	return out
}

// TextMap returns an object of strings, nil where it is not there.
func (n *Node) TextMap() map[string]string {
	if !n.is(canon.Object) {
		return nil
	}
	out := map[string]string{}
	for _, m := range n.members {
		out[m.Name] = m.Text()
	}
	return out
}

// Version refuses a file that says another schemaVersion than this one.
func (n *Node) Version(want string) {
	v := n.Need("schemaVersion")
	if v.is(canon.Number) && v.Value.Text() != want {
		v.Refuse("this remit reads schemaVersion %s and no other", want)
	}
}
