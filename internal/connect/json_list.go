package connect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// listElement is an element that connecting added to a list in a JSON file.
type listElement struct {
	Path  []string        `json:"path"` // keys that lead to the list
	Value json.RawMessage `json:"value"`
	Made  int             `json:"made,omitempty"` // how many containers at the end of Path connecting created
}

// asObject returns a list as an object whose members have their indices as
// names, so that the edits of objects apply to it.
func asObject(list *hujson.Array) *hujson.Object {
	obj := &hujson.Object{AfterExtra: list.AfterExtra}
	for i, is := range list.Elements {
		name := hujson.Value{BeforeExtra: is.BeforeExtra, StartOffset: is.StartOffset, Value: hujson.String(strconv.Itoa(i))}
		obj.Members = append(obj.Members, hujson.ObjectMember{Name: name, Value: is})
	}
	return obj
}

// place is where a path leads in a text.
type place struct {
	parent *hujson.Object // object of the last key that was found
	from   int            // offset of the parent
	found  int            // number of keys that were found
	list   *hujson.Array  // nil: the path is missing
	at     int            // offset of the list
}

func placeOf(body []byte, path []string) (p place, err error) {
	root, at, err := parseJSON(body)
	if err != nil {
		return p, err
	}
	p.parent, p.from = root, at
	for i, key := range path {
		m, err := member(body, p.parent, key)
		if err != nil || m == nil {
			return p, err
		}
		p.found++
		if i == len(path)-1 {
			list, ok := m.Value.Value.(*hujson.Array)
			if !ok {
				return p, refuse(body, m.Value.StartOffset, "%q is not a list", key)
			}
			p.list, p.at = list, m.Value.StartOffset
			return p, nil
		}
		obj, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			return p, refuse(body, m.Value.StartOffset, "%q is not an object", key)
		}
		p.parent, p.from = obj, m.Value.StartOffset
	}
	return p, nil
}

// added returns a text with an element at the end of a list. It creates the
// list and the objects around it if they are missing, and notes that in the
// element.
func (l *listElement) added(body []byte) ([]byte, error) {
	p, err := placeOf(body, l.Path)
	if err != nil {
		return nil, err
	}
	e, err := editOf(body)
	if err != nil {
		return nil, err
	}
	if l.Made = len(l.Path) - p.found; l.Made == 0 {
		obj := asObject(p.list)
		indent, lines := e.indent(obj, p.at)
		e.append(obj, p.at, []serverText{{raw: e.value(l.Value, indent, lines)}})
	} else {
		value := slices.Concat([]byte{'['}, l.Value, []byte{']'})
		for i := len(l.Path) - 1; i > p.found; i-- {
			value = objectOf([]serverText{{name: l.Path[i], value: value}}).object()
		}
		e.append(p.parent, p.from, []serverText{{name: l.Path[p.found], value: value}})
	}
	after := spliced(body, e.splices)
	return after, l.proven(body, after, func(list []any) []any { return append(list, decoded(l.Value)) }, false)
}

// removed returns a text without the element, and without the containers that
// adding it created, if they are empty now. It returns the same text if the
// element is missing or changed.
func (l *listElement) removed(body []byte) ([]byte, error) {
	p, err := placeOf(body, l.Path)
	if err != nil || p.list == nil {
		return body, err
	}
	index := slices.IndexFunc(p.list.Elements, func(v hujson.Value) bool {
		v = v.Clone()
		v.Minimize()
		return sameJSON(v.Pack(), l.Value)
	})
	if index < 0 {
		return body, nil
	}
	after, err := cutMember(body, asObject(p.list), p.at, strconv.Itoa(index))
	if err != nil {
		return nil, err
	}
	emptied := false
	if l.Made > 0 {
		if after, emptied, err = withoutEmpty(after, l.Path, l.Made); err != nil {
			return nil, err
		}
	}
	return after, l.proven(body, after, func(list []any) []any { return slices.Delete(slices.Clone(list), index, index+1) }, emptied)
}

// withoutEmpty removes the list at a path, and up to made containers in all, as
// long as they are empty. A container with a comment stays.
func withoutEmpty(body []byte, path []string, made int) (after []byte, emptied bool, err error) {
	after = body
	for ; made > 0; made-- {
		parent, from, ok := emptyAt(after, path)
		if !ok {
			return after, emptied, nil
		}
		if after, err = cutMember(after, parent, from, path[len(path)-1]); err != nil {
			return nil, false, err
		}
		path, emptied = path[:len(path)-1], true
	}
	return after, emptied, nil
}

// emptyAt returns the object that holds the empty container at a path.
func emptyAt(body []byte, path []string) (parent *hujson.Object, from int, ok bool) {
	root, at, err := parseJSON(body)
	if err != nil {
		return nil, 0, false
	}
	parent, from = root, at
	for i, key := range path {
		m, err := member(body, parent, key)
		if err != nil || m == nil {
			return nil, 0, false
		}
		inner, _ := m.Value.Value.(*hujson.Object)
		if i < len(path)-1 {
			if inner == nil {
				return nil, 0, false
			}
			parent, from = inner, m.Value.StartOffset
			continue
		}
		list, _ := m.Value.Value.(*hujson.Array)
		empty := inner != nil && len(inner.Members) == 0 && blank(inner.AfterExtra) ||
			list != nil && len(list.Elements) == 0 && blank(list.AfterExtra)
		return parent, from, empty
	}
	return nil, 0, false
}

func cutMember(body []byte, obj *hujson.Object, from int, name string) ([]byte, error) {
	e, err := editOf(body)
	if err != nil {
		return nil, err
	}
	e.swap(obj, from, change{out: []string{name}})
	return spliced(body, e.splices), nil
}

// proven compares what a text says after an edit with what it must say.
func (l *listElement) proven(before, after []byte, edit func([]any) []any, emptied bool) error {
	was, err := jsonFormat{}.values(before)
	if err != nil {
		return err
	}
	is, err := jsonFormat{}.values(after)
	if err != nil {
		return &FileError{Text: "it cannot be edited without breaking it"}
	}
	list, _ := at(was, l.Path).([]any)
	setAt(was, l.Path, edit(list))
	if emptied {
		dropEmpty(was, l.Path, l.Made)
		dropEmpty(is, l.Path, l.Made)
	}
	if !reflect.DeepEqual(was, is) {
		return &FileError{Text: "it cannot be edited without changing what else it says"}
	}
	return nil
}

// setAt sets the value at a path, and creates the objects that lead to it.
func setAt(v map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		inner, ok := v[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			v[key] = inner
		}
		v = inner
	}
	v[path[len(path)-1]] = value
}

// dropEmpty removes the container at a path, and up to made in all, as long as
// they are empty.
func dropEmpty(v map[string]any, path []string, made int) {
	for ; made > 0 && empty(at(v, path)); made-- {
		parent, ok := at(v, path[:len(path)-1]).(map[string]any)
		if !ok {
			return
		}
		delete(parent, path[len(path)-1])
		path = path[:len(path)-1]
	}
}

// value encodes a JSON value as a part of the text.
func (e *jsonEdit) value(raw json.RawMessage, indent string, lines bool) string {
	if !lines {
		return string(raw)
	}
	var b bytes.Buffer
	_ = json.Indent(&b, raw, indent, e.unit) // the JSON was made here
	return withLineEnd(b.String(), e.end)
}

// indentUnit returns one step of indentation of a text.
func indentUnit(root *hujson.Object) string {
	if len(root.Members) > 0 {
		if indent, ok := lastLine(root.Members[0].Name.BeforeExtra); ok && indent != "" {
			return indent
		}
	}
	return strings.Repeat(" ", 2)
}

// editOf begins an edit of a text.
func editOf(body []byte) (*jsonEdit, error) {
	root, _, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	return &jsonEdit{body: body, end: lineEnd(body), unit: indentUnit(root)}, nil
}
