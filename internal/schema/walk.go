package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// maxWork bounds the number of subschema checks in one validation. A million
// take about a second.
const maxWork = 1_000_000

// load is a part and how many times the validator will check a value with it.
// The count is floating point because it can exceed every integer.
type load struct {
	*part
	times float64
}

// walk visits a value with its schema, before the validator does. It counts the
// validator's work, and finds members whose name differs from a declared one
// only in case.
type walk struct {
	work     float64
	path     []string
	variants []problem
	// seen receives each object, by joined path, if the caller needs the
	// declarations.
	seen map[string]place
}

// place is an object of the value and the parts that judge it.
type place struct {
	path  []string
	value canon.Value
	loads []load
}

// all walks the whole value and returns false if it is too much work.
func (w *walk) all(root *part, v canon.Value) bool {
	return w.value([]load{{root, 1}}, v)
}

func (w *walk) value(entries []load, v canon.Value) bool {
	loads := expand(entries)
	for _, l := range loads {
		w.work += l.times
	}
	if w.work > maxWork {
		return false
	}
	switch v.Kind() {
	case canon.Object:
		return w.object(loads, v)
	case canon.Array:
		return w.array(loads, v)
	default:
		return true
	}
}

func (w *walk) object(loads []load, v canon.Value) bool {
	if w.seen != nil {
		w.seen[joined(w.path)] = place{path: slices.Clone(w.path), value: v, loads: loads}
	}
	for name, member := range v.Members() {
		if near := variant(loads, name); near != "" {
			text := "differs only in case from " + strconv.Quote(near) + ", names are exact"
			w.variants = append(w.variants, problem{path: append(slices.Clone(w.path), name), text: text})
		}
		names, inside := below(loads, name)
		if len(names) > 0 && !w.value(names, canon.Value{}) {
			return false
		}
		if len(inside) > 0 && !w.into(name, inside, member) {
			return false
		}
	}
	return true
}

func (w *walk) array(loads []load, v canon.Value) bool {
	for i, e := range v.Elements() {
		var inside []load
		for _, l := range loads {
			if i < len(l.prefix) {
				inside = appendLoad(inside, l.prefix[i], l.times)
			} else {
				inside = appendLoad(inside, l.items, l.times)
			}
			inside = appendLoad(inside, l.contains, l.times)
			inside = appendLoad(inside, l.restItems, l.times)
		}
		if len(inside) > 0 && !w.into(strconv.Itoa(i), inside, e) {
			return false
		}
	}
	return true
}

func (w *walk) into(token string, inside []load, v canon.Value) bool {
	w.path = append(w.path, token)
	ok := w.value(inside, v)
	w.path = w.path[:len(w.path)-1]
	return ok
}

// below returns the parts that judge a member's name and those that judge its value.
func below(loads []load, name string) (names, inside []load) {
	for _, l := range loads {
		names = appendLoad(names, l.names, l.times)
		found := false
		if to, ok := l.properties[name]; ok {
			inside = appendLoad(inside, to, l.times)
			found = true
		}
		for _, p := range l.patterns {
			if p.re.MatchString(name) {
				inside = appendLoad(inside, p.to, l.times)
				found = true
			}
		}
		if !found {
			inside = appendLoad(inside, l.additional, l.times)
		}
		inside = appendLoad(inside, l.rest, l.times)
	}
	return names, inside
}

func appendLoad(loads []load, p *part, times float64) []load {
	if p == nil {
		return loads
	}
	return append(loads, load{p, times})
}

// expand adds all parts beside the entries, each part once, with the number of
// paths to it.
func expand(entries []load) []load {
	if len(entries) == 1 && len(entries[0].beside) == 0 {
		return entries
	}
	times := map[*part]float64{}
	var parts []*part
	var add func(p *part)
	add = func(p *part) {
		if _, ok := times[p]; ok {
			return
		}
		times[p] = 0
		for _, q := range p.beside {
			add(q)
		}
		parts = append(parts, p)
	}
	for _, e := range entries {
		add(e.part)
		times[e.part] += e.times
	}
	slices.SortFunc(parts, func(a, b *part) int { return b.rank - a.rank })
	loads := make([]load, 0, len(parts))
	for _, p := range parts {
		for _, q := range p.beside {
			times[q] += times[p]
		}
		loads = append(loads, load{p, times[p]})
	}
	return loads
}

// variant returns the declared name that equals an undeclared one except for
// case, or "".
func variant(loads []load, name string) string {
	best := ""
	for _, l := range loads {
		if _, ok := l.properties[name]; ok {
			return ""
		}
	}
	for _, l := range loads {
		for declared := range l.properties {
			if strings.EqualFold(declared, name) && (best == "" || declared < best) {
				best = declared
			}
		}
	}
	return best
}

// joined returns a map key of a path; no two paths share one.
func joined(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString(strconv.Itoa(len(token)))
		b.WriteByte(':')
		b.WriteString(token)
	}
	return b.String()
}
