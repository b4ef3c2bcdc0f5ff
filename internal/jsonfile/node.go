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

// MaxBytes is the maximum size of a file.
const MaxBytes = 1 << 20

const maxDepth = 64

// Node is one value of a file. Its methods accept a nil Node for a missing
// value, which is already reported.
type Node struct {
	Name  string      // name of the member
	Value canon.Value // the parsed value

	doc      *document
	at, key  int // offsets in bytes of the value and of the member's name
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

// Parse reads a file. If it is not strict JSON, Parse reports that and returns
// nil.
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
		if r.Len() == before { // a document with a duplicate member before its syntax error
			r.Add(Finding{File: name, Text: err.Error()})
		}
		return nil
	}
	root.fill(value)
	return root
}

// read finds the position of every value, and duplicate members.
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
		for dec.PeekKind() != kind+2 { // its closing bracket, in ASCII
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
		d.refuse(at, fmt.Sprintf("%s occurs twice, want each name once", quoted(m.Name)))
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

// quoted returns a name for a message, shortened if it is long.
func quoted(name string) string {
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	return strconv.Quote(name)
}

// Place returns the position of the value.
func (n *Node) Place() string {
	if n == nil {
		return ""
	}
	at := document{name: n.doc.name, text: n.doc.text, report: &Report{}}
	at.refuse(n.at, "")
	return at.report.all[0].Place()
}

// Refuse reports a problem with the value.
func (n *Node) Refuse(format string, args ...any) {
	if n != nil {
		n.doc.refuse(n.at, fmt.Sprintf(format, args...))
	}
}

// RefuseName reports a problem with the member, at its name.
func (n *Node) RefuseName(format string, args ...any) {
	if n != nil {
		n.doc.refuse(n.key, fmt.Sprintf(format, args...))
	}
}

// Get returns a member, or nil if it is missing.
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

// Need returns a required member.
func (n *Node) Need(name string) *Node {
	m := n.Get(name)
	if n != nil && m == nil && n.Value.Kind() == canon.Object {
		n.Refuse("%s is missing", quoted(name))
	}
	return m
}

// Members returns the members of an object, in the order of the file.
func (n *Node) Members() []*Node {
	if n == nil {
		return nil
	}
	return n.members
}

// Elements returns the elements of an array.
func (n *Node) Elements() []*Node {
	if n == nil {
		return nil
	}
	return n.elements
}

// Under returns the value that tokens lead to, or the last existing one on the
// path.
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

// Closed reports a value that is not an object, and every member that is not
// known. It returns whether the value is an object.
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

// is reports a value of another kind.
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

// IsObject reports a value that is not an object.
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

// Texts returns an array of strings, or nil if it is missing.
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

// TextMap returns an object of strings, or nil if it is missing.
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

// Version reports a file with a schemaVersion other than want.
func (n *Node) Version(want string) {
	v := n.Need("schemaVersion")
	if v.is(canon.Number) && v.Value.Text() != want {
		v.Refuse("this remit reads schemaVersion %s and no other", want)
	}
}
