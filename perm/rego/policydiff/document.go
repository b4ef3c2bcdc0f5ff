package policydiff

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remit-dev/remit/perm"
)

// document is a request in its JSON form.
type document = map[string]any

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return cloneDocument(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = clone(x)
		}
		return out
	default:
		return v
	}
}

func cloneDocument(d document) document {
	out := make(document, len(d))
	for k, v := range d {
		out[k] = clone(v)
	}
	return out
}

// baseText is the request from which each other one is made.
const baseText = `{
  "purpose": "run", "time": "2026-01-07T12:00:00Z",
  "principal": {"id": "agent", "kind": "agent", "roles": []},
  "session": {"id": "s_1", "labels": [], "tools": {}, "recent": []},
  "txn": {"id": "t_1", "calls": 0, "depth": 0},
  "tool": {
    "name": "some_tool", "version": "1", "tags": [], "digest": "", "provenance": "builtin", "can_verify": true, "can_revert": true,
    "confinement": "handles", "coverage": "confined", "destination": "none", "grade": "ungraded", "idempotent": false,
    "risk": "low", "approval": false
  },
  "call": {"id": "c_1", "args": {}, "effect_class": "reversible", "declared": true, "batch": {"index": 0, "count": 1}},
  "access": {
    "action": "read", "dynamic": false,
    "resource": {"kind": "file", "text": "file://workspace/a.txt", "root": "workspace", "path": "a.txt", "segments": ["a.txt"], "name": "a.txt", "ext": ".txt"}
  }
}`

func baseDocument() (d document) {
	if err := json.Unmarshal([]byte(baseText), &d); err != nil {
		panic(err) // a constant
	}
	return d
}

// schema finds the types of the places of a request.
type schema struct{ root, definitions map[string]any }

func inputSchema() schema {
	var root map[string]any
	if err := json.Unmarshal(perm.InputSchema(), &root); err != nil {
		panic(err) // a constant
	}
	definitions, _ := root["definitions"].(map[string]any)
	return schema{root, definitions}
}

func (s schema) resolve(node any) map[string]any {
	m, _ := node.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		m, _ = s.definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	return m
}

// at returns the node of a path. ok is false if the request has no such place.
// A nil node has any type.
func (s schema) at(path []string) (node map[string]any, ok bool) {
	node = s.root
	for _, step := range path {
		if node["type"] == nil {
			return nil, true // below an argument or an output
		}
		if isIndex(step) {
			node = s.resolve(node["items"])
		} else {
			properties, _ := node["properties"].(map[string]any)
			below, has := properties[step]
			if !has {
				below = node["additionalProperties"]
			}
			node = s.resolve(below)
		}
		if node == nil {
			return nil, false
		}
	}
	return node, true
}

func isIndex(step string) bool { return strings.HasPrefix(step, "[") }

// fits reports whether a place can have a value.
func (s schema) fits(path []string, v any) bool {
	node, ok := s.at(path)
	if !ok || node == nil {
		return ok
	}
	if text, is := v.(string); is && node["format"] == "date-time" {
		_, err := time.Parse(time.RFC3339, text)
		return err == nil
	}
	if enum, has := node["enum"].([]any); has {
		return slices.Contains(enum, v)
	}
	if list, is := v.([]any); is && slices.ContainsFunc(list, func(e any) bool { return !s.fits(append(slices.Clone(path), "[]"), e) }) {
		return false
	}
	types, _ := node["type"].([]any)
	if one, is := node["type"].(string); is {
		types = []any{one}
	}
	if len(types) == 0 {
		return true
	}
	return slices.ContainsFunc(types, func(t any) bool { return hasType(t, v) })
}

func hasType(t, v any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case float64:
		return t == "number" || t == "integer" && v == float64(int64(v))
	case []any:
		return t == "array"
	default:
		return t == "object"
	}
}

// filled returns the smallest value of a node.
func (s schema) filled(node map[string]any) any {
	if enum, ok := node["enum"].([]any); ok {
		return enum[0]
	}
	kind := node["type"]
	if types, several := kind.([]any); several {
		kind = types[0]
	}
	switch kind {
	case "string":
		return ""
	case "integer", "number":
		return float64(0)
	case "boolean":
		return false
	case "array":
		return []any{}
	case nil:
		return map[string]any{}
	}
	out := map[string]any{}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			out[name] = s.filled(s.resolve(properties[name]))
		}
	}
	if _, resource := properties["statement"]; resource {
		setResource(out, "text", "file://workspace/a.txt")
	}
	return out
}

// get returns the values at a path: those of each element for "[]".
func get(d document, path []string) []any {
	at := []any{any(d)}
	for _, step := range path {
		var next []any
		for _, node := range at {
			switch node := node.(type) {
			case map[string]any:
				if step == "[]" {
					for _, k := range sortedNames(node) {
						next = append(next, node[k])
					}
				} else if v, has := node[resolved(d, step)]; has {
					next = append(next, v)
				}
			case []any:
				if step == "[]" {
					next = append(next, node...)
				} else if i, ok := index(step); ok && i < len(node) {
					next = append(next, node[i])
				}
			}
		}
		at = next
	}
	return at
}

// resolved returns a step with the text that "{a.b}" refers to.
func resolved(d document, step string) string {
	ref, ok := strings.CutPrefix(step, "{")
	if !ok {
		return step
	}
	for _, v := range get(d, strings.Split(strings.TrimSuffix(ref, "}"), ".")) {
		if text, is := v.(string); is {
			return text
		}
	}
	return step
}

func index(step string) (int, bool) {
	i, err := strconv.Atoi(strings.Trim(step, "[]"))
	return i, err == nil && i >= 0 && i < 64
}

func (s schema) set(d document, path []string, v any) bool {
	if i := slices.Index(path, "resource"); i > 0 && i+1 < len(path) {
		s.place(d, d, path[:i+1], nil, nil)
		for _, facts := range get(d, path[:i+1]) {
			if facts, ok := facts.(map[string]any); ok {
				return setPart(facts, path[i+1:], v)
			}
		}
		return false
	}
	return s.place(d, d, path, nil, func(any) any { return v })
}

// place walks to a path below node and puts a value there. It creates what is
// missing. A nil function keeps what is there.
func (s schema) place(d document, node any, path, done []string, value func(any) any) bool {
	step := path[0]
	here := append(slices.Clone(done), step)
	last := len(path) == 1
	next := func(old any, has bool) any {
		if last && value != nil {
			return value(old)
		}
		if has && old != nil {
			return old
		}
		of, _ := s.at(here)
		if of == nil && !last && isIndex(path[1]) {
			return []any{}
		}
		return s.filled(of)
	}
	switch node := node.(type) {
	case map[string]any:
		name := resolved(d, step)
		if isIndex(name) {
			return false
		}
		old, has := node[name]
		node[name] = next(old, has)
		if last {
			return true
		}
		list, is := node[name].([]any)
		if !is {
			return s.place(d, node[name], path[1:], here, value)
		}
		list, ok := s.extend(list, path[1], len(path) == 2, append(here, path[1]))
		if !ok {
			return false
		}
		node[name] = list
		return s.place(d, list, path[1:], here, value)
	case []any:
		i, ok := index(step)
		if !ok {
			i = len(node) - 1
			if !last {
				i = 0
			}
		}
		node[i] = next(node[i], true)
		return last || s.place(d, node[i], path[1:], here, value)
	}
	return false
}

// extend returns a list that has the element of a step. A last step "[]" means
// a new element.
func (s schema) extend(list []any, step string, last bool, at []string) ([]any, bool) {
	if !isIndex(step) {
		return nil, false
	}
	n, fixed := index(step)
	switch {
	case fixed:
		n++
	case last:
		n = len(list) + 1
	default:
		n = max(len(list), 1)
	}
	of, _ := s.at(at)
	for len(list) < n {
		list = append(list, s.filled(of))
	}
	return list, true
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// remove deletes the place of a path if a request can lack it.
func (s schema) remove(d document, path []string) {
	last := len(path) - 1
	above, _ := s.at(path[:last])
	if required, _ := above["required"].([]any); slices.Contains(path, "resource") || slices.Contains(required, any(path[last])) {
		return
	}
	if isIndex(path[last]) {
		if last > 0 {
			for _, node := range get(d, path[:last-1]) {
				if m, ok := node.(map[string]any); ok {
					m[resolved(d, path[last-1])] = []any{}
				}
			}
		}
		return
	}
	for _, node := range get(d, path[:last]) {
		if m, ok := node.(map[string]any); ok {
			delete(m, resolved(d, path[last]))
		}
	}
}
