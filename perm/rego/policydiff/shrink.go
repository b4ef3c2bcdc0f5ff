package policydiff

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// maxPasses bounds how often shrink goes over all fields.
const maxPasses = 16

// shrink puts fields back to the base request while a difference of the same
// rules stays.
func (s *search) shrink(ctx context.Context, d document, p pair) (document, pair, error) {
	for range maxPasses {
		changed := false
		for _, smaller := range s.smaller(d) {
			candidate := smaller(d)
			if candidate == nil {
				continue
			}
			got, _, err := s.decide(ctx, candidate)
			if errors.Is(err, errUndecided) {
				continue
			}
			if err != nil {
				return nil, p, err
			}
			if got.within(p) {
				d, p, changed = candidate, got, true
			}
		}
		if !changed {
			break
		}
	}
	return d, p, nil
}

// within reports whether the pair is the same difference, by the same rules or
// some of them.
func (p pair) within(of pair) bool {
	if !p.differs() || p.before.Effect != of.before.Effect || p.after.Effect != of.after.Effect {
		return false
	}
	return subset(rulesOf(p.before), rulesOf(of.before)) && subset(rulesOf(p.after), rulesOf(of.after))
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// smaller returns steps that make a document more like the base.
func (s *search) smaller(d document) (steps []func(document) document) {
	for _, path := range differing(nil, d, s.g.base) {
		steps = append(steps, func(d document) document { return s.g.restored(d, path) })
		if _, number := lookup(d, path).(float64); number {
			for _, lower := range []func(float64) float64{func(n float64) float64 { return math.Trunc(n / 2) }, func(n float64) float64 { return n - 10 }, func(n float64) float64 { return n - 1 }} {
				steps = append(steps, func(d document) document { return lowered(d, path, lower) })
			}
		}
		if list, ok := lookup(d, path).([]any); ok {
			for i := range slices.Backward(list) {
				steps = append(steps, func(d document) document { return without(d, path, i) })
			}
		}
	}
	steps = append(steps, shorterResources(d)...)
	return steps
}

// differing returns the places in which two documents differ. A list and a
// resource are one place.
func differing(at []string, a, b map[string]any) (paths [][]string) {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, has := a[name]; !has {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		here := append(slices.Clone(at), name)
		x, isX := a[name].(map[string]any)
		y, isY := b[name].(map[string]any)
		switch {
		case reflect.DeepEqual(a[name], b[name]):
		case isX && (isY || b[name] == nil) && name != "resource" && len(x) > 0:
			paths = append(paths, here)
			paths = append(paths, differing(here, x, y)...)
		default:
			paths = append(paths, here)
		}
	}
	return paths
}

func lookup(d map[string]any, path []string) any {
	var at any = d
	for _, name := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[name]
	}
	return at
}

// restored returns a copy of d with the value of the base at a path. It keeps
// what the object above must have.
func (g *generator) restored(d document, path []string) document {
	out, base := cloneDocument(d), g.base
	in, ok := lookup(out, path[:len(path)-1]).(map[string]any)
	if !ok || reflect.DeepEqual(lookup(d, path), lookup(base, path)) {
		return nil
	}
	above, _ := lookup(base, path[:len(path)-1]).(map[string]any)
	if v, has := above[path[len(path)-1]]; has {
		in[path[len(path)-1]] = clone(v)
	} else {
		g.schema.remove(out, path)
	}
	if reflect.DeepEqual(out, d) {
		return nil
	}
	return out
}

// lowered returns a copy of d with a smaller number, which is not negative.
func lowered(d document, path []string, lower func(float64) float64) document {
	out := cloneDocument(d)
	in, ok := lookup(out, path[:len(path)-1]).(map[string]any)
	n, number := in[path[len(path)-1]].(float64)
	if to := lower(n); ok && number && to >= 0 && to < n {
		in[path[len(path)-1]] = to
		return out
	}
	return nil
}

// without returns a copy of d without one element of a list.
func without(d document, path []string, i int) document {
	out := cloneDocument(d)
	in, _ := lookup(out, path[:len(path)-1]).(map[string]any)
	list, ok := lookup(out, path).([]any)
	if !ok || i >= len(list) {
		return nil
	}
	in[path[len(path)-1]] = slices.Delete(list, i, i+1)
	return out
}

// shorterResources returns steps that leave out a segment of the access.
func shorterResources(d document) (steps []func(document) document) {
	segments, _ := lookup(d, []string{"access", "resource", "segments"}).([]any)
	for i := range segments {
		steps = append(steps, func(d document) document {
			out := cloneDocument(d)
			facts, _ := lookup(out, []string{"access", "resource"}).(map[string]any)
			names, ok := facts["segments"].([]any)
			if !ok || i >= len(names) || len(names) == 1 {
				return nil
			}
			if !setResource(facts, "path", joined(slices.Delete(names, i, i+1))) {
				return nil
			}
			return out
		})
	}
	return steps
}

func joined(names []any) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i], _ = n.(string)
	}
	return strings.Join(words, "/")
}

// fields returns what differs from the base, and what the rules that decided
// read.
func (s *search) fields(ctx context.Context, d document, r perm.Request) ([]Field, error) {
	paths := [][]string{{"tool", "name"}, {"access", "action"}, {"access", "resource", "text"}}
	for _, path := range differing(nil, d, s.g.base) {
		if _, object := lookup(d, path).(map[string]any); !object {
			paths = append(paths, path)
		}
	}
	for _, e := range []*rego.Engine{s.o.Old, s.o.New} {
		x, err := e.Explain(ctx, r)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue // the reason of the decision is the error
		}
		for _, rule := range x.Rules {
			for _, in := range rule.Inputs {
				if path := strings.Split(in.Path, ".")[1:]; rule.Decided && len(path) > 1 {
					paths = append(paths, path)
				}
			}
		}
	}
	slices.SortFunc(paths, slices.Compare[[]string])
	var out []Field
	for _, path := range slices.CompactFunc(paths, slices.Equal[[]string]) {
		v := lookup(d, path)
		if len(path) > 2 && path[1] == "resource" && path[2] != "text" && path[2] != "argv" {
			continue // the text tells
		}
		if _, object := v.(map[string]any); object || v == nil {
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(out, Field{Path: "input." + strings.Join(path, "."), Value: text})
	}
	return out, nil
}
