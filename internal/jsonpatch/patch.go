package jsonpatch

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

const (
	maxOperations = 1000
	maxCopied     = 100_000 // maximum number of values that copies add: each copy could double the document
)

// operation is one step of a patch, decoded.
type operation struct {
	op         string
	path, from []string
	value      any
}

// Apply returns a document with a patch applied. An error names the operation,
// counted from 1, its path, and the problem; then no operation has had an
// effect.
func Apply(doc canon.Value, patch []byte) (canon.Value, error) {
	v, err := canon.Parse(patch, canon.DefaultLimits())
	if err != nil {
		return canon.Value{}, fmt.Errorf("the patch: %w", err)
	}
	if v.Kind() != canon.Array || v.Len() > maxOperations {
		return canon.Value{}, fmt.Errorf("the patch is not a list of at most %d operations, as RFC 6902 has it", maxOperations)
	}
	root, left := doc.Any(), maxCopied
	for i, e := range v.Elements() {
		o, err := decode(e)
		if err == nil {
			root, err = o.apply(root, &left)
		}
		if err != nil {
			op, _ := e.Get("op")
			path, _ := e.Get("path")
			return canon.Value{}, fmt.Errorf("operation %d, %s %s: %w", i+1, strconv.Quote(op.Text()), strconv.Quote(path.Text()), err)
		}
	}
	return canon.From(root)
}

// wants maps an operation to its member besides op and path.
var wants = map[string]string{"add": "value", "remove": "", "replace": "value", "move": "from", "copy": "from", "test": "value"}

func decode(v canon.Value) (o operation, err error) {
	op, _ := v.Get("op")
	want, known := wants[op.Text()]
	if op.Kind() != canon.String || !known {
		return o, errors.New(`"op" is none of add, remove, replace, move, copy, test`)
	}
	o.op = op.Text()
	for name := range v.Members() {
		if name != "op" && name != "path" && (name != want || want == "") {
			return o, fmt.Errorf("%s has no member %q", o.op, name)
		}
	}
	if o.path, err = pointer(v, "path"); err != nil {
		return o, err
	}
	switch want {
	case "from":
		o.from, err = pointer(v, "from")
	case "value":
		value, there := v.Get("value")
		if !there {
			err = errors.New(`"value" is missing`)
		}
		o.value = value.Any()
	}
	return o, err
}

// pointer reads a JSON Pointer, RFC 6901.
func pointer(v canon.Value, name string) ([]string, error) {
	text, there := v.Get(name)
	switch {
	case !there || text.Kind() != canon.String:
		return nil, fmt.Errorf("%q is missing, or no text", name)
	case text.Text() == "":
		return nil, nil
	case !strings.HasPrefix(text.Text(), "/"):
		return nil, fmt.Errorf(`%q does not begin with "/"`, name)
	}
	tokens := strings.Split(text.Text()[1:], "/")
	for i, t := range tokens {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(t), "~") {
			return nil, fmt.Errorf(`%q has a "~" that is neither "~0" nor "~1"`, name)
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// Pointer writes tokens as a JSON Pointer.
func Pointer(tokens ...string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func (o operation) apply(root any, left *int) (any, error) {
	switch o.op {
	case "add":
		return add(root, o.path, o.value)
	case "remove":
		return remove(root, o.path)
	case "replace":
		if _, err := get(root, o.path); err != nil {
			return nil, err
		}
		return edit(root, o.path, func(any) (any, change) { return o.value, set })
	case "test":
		v, err := get(root, o.path)
		if err == nil && !reflect.DeepEqual(v, o.value) {
			err = errors.New("the test failed: the value there is another one")
		}
		return root, err
	case "copy":
		v, err := get(root, o.from)
		if err != nil {
			return nil, fmt.Errorf(`"from": %w`, err)
		}
		if v = clone(v, left); *left < 0 {
			return nil, errors.New("the copies are too large")
		}
		return add(root, o.path, v)
	default: // move
		if len(o.from) < len(o.path) && slices.Equal(o.from, o.path[:len(o.from)]) {
			return nil, errors.New("a value cannot be moved into itself")
		}
		v, err := get(root, o.from)
		if err == nil && !slices.Equal(o.from, o.path) {
			root, err = remove(root, o.from)
		}
		if err != nil {
			return nil, fmt.Errorf(`"from": %w`, err)
		}
		if slices.Equal(o.from, o.path) {
			return root, nil
		}
		return add(root, o.path, v)
	}
}

var errNothing = errors.New("there is nothing at this place")

func get(v any, path []string) (any, error) {
	for _, token := range path {
		switch c := v.(type) {
		case map[string]any:
			member, there := c[token]
			if !there {
				return nil, errNothing
			}
			v = member
		case []any:
			i, err := index(token, len(c)-1)
			if err != nil {
				return nil, err
			}
			v = c[i]
		default:
			return nil, errNothing
		}
	}
	return v, nil
}

// index parses the index of an element, at most last.
func index(token string, last int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 {
		return 0, errors.New("an element of a list is named by its number, without leading zeros")
	}
	if i > last {
		return 0, errNothing
	}
	return i, nil
}

// change says what happens to a place.
type change int

const (
	set change = iota
	insert
	drop
)

func add(root any, path []string, value any) (any, error) {
	return edit(root, path, func(in any) (any, change) {
		if _, list := in.([]any); list {
			return value, insert
		}
		return value, set
	})
}

func remove(root any, path []string) (any, error) {
	if len(path) == 0 {
		return nil, errors.New("the whole document cannot be removed")
	}
	if _, err := get(root, path); err != nil {
		return nil, err
	}
	return edit(root, path, func(any) (any, change) { return nil, drop })
}

// edit changes one place: how gets the value that contains it. edit returns the
// changed document.
func edit(v any, path []string, how func(in any) (any, change)) (any, error) {
	if len(path) == 0 {
		value, _ := how(nil)
		return value, nil
	}
	token, last := path[0], len(path) == 1
	switch c := v.(type) {
	case map[string]any:
		if last {
			if value, what := how(c); what == drop {
				delete(c, token)
			} else {
				c[token] = value
			}
			return c, nil
		}
		member, there := c[token]
		if !there {
			return nil, errNothing
		}
		within, err := edit(member, path[1:], how)
		c[token] = within
		return c, err
	case []any:
		return editList(c, token, path[1:], how)
	default:
		return nil, errNothing
	}
}

func editList(c []any, token string, rest []string, how func(any) (any, change)) (any, error) {
	if len(rest) > 0 {
		i, err := index(token, len(c)-1)
		if err != nil {
			return nil, err
		}
		c[i], err = edit(c[i], rest, how)
		return c, err
	}
	value, what := how(c)
	most := len(c) - 1
	if what == insert {
		most = len(c)
		if token == "-" {
			return append(c, value), nil
		}
	}
	i, err := index(token, most)
	if err != nil {
		return nil, err
	}
	switch what {
	case insert:
		return slices.Insert(c, i, value), nil
	case drop:
		return slices.Delete(c, i, i+1), nil
	case set:
	}
	c[i] = value
	return c, nil
}

// clone copies a value, and counts its parts.
func clone(v any, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch c := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(c))
		for name, member := range c {
			out[name] = clone(member, left)
		}
		return out
	case []any:
		out := make([]any, len(c))
		for i, e := range c {
			out[i] = clone(e, left)
		}
		return out
	}
	return v
}
