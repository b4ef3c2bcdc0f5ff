package connect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// field is one member of a server's entry.
type field struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// entry is the configuration of one server, with its members in the order of
// the file.
type entry []field

func (e entry) get(name string) (json.RawMessage, bool) {
	for _, f := range e {
		if f.Name == name {
			return f.Value, true
		}
	}
	return nil, false
}

func (e entry) text(name string) (string, bool) {
	raw, there := e.get(name)
	var s string
	return s, there && json.Unmarshal(raw, &s) == nil && raw[0] == '"'
}

func (e *entry) set(name string, value any) {
	raw := marshal(value)
	for i := range *e {
		if (*e)[i].Name == name {
			(*e)[i].Value = raw
			return
		}
	}
	*e = append(*e, field{name, raw})
}

func (e entry) rename(from, to string) {
	for i := range e {
		if e[i].Name == from {
			e[i].Name = to
		}
	}
}

func (e *entry) drop(names ...string) {
	*e = slices.DeleteFunc(*e, func(f field) bool { return slices.Contains(names, f.Name) })
}

// marshal encodes a value without HTML escapes. It cannot fail, as all values
// here are strings and lists of them.
func marshal(value any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value)
	return bytes.TrimSpace(b.Bytes())
}

// object returns the entry as JSON.
func (e entry) object() json.RawMessage {
	b := []byte{'{'}
	for i, f := range e {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, marshal(f.Name)...), ':'), f.Value...)
	}
	return append(b, '}')
}

// launches lists the fields that start or reach a server. Entries that agree in
// them describe the same server, regardless of their other members.
var launches = []string{"type", "command", "args", "env", "cwd", "url", "headers"}

func (e entry) sameServer(other entry) bool {
	for _, name := range launches {
		a, _ := e.get(name)
		b, _ := other.get(name)
		if !sameJSON(a, b) {
			return false
		}
	}
	return true
}

func (e entry) same(other entry) bool { return sameJSON(e.object(), other.object()) }

// sameJSON compares values. Missing, null and empty are equal: a missing list
// of arguments is an empty one.
func sameJSON(a, b json.RawMessage) bool {
	x, y := decoded(a), decoded(b)
	return reflect.DeepEqual(x, y) || empty(x) && empty(y)
}

func decoded(raw json.RawMessage) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&v)
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	default:
		return false
	}
}
