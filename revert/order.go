package revert

import (
	"iter"
	"slices"
	"strings"
)

// dependencyGraph maps a call to the calls that depend on it. A call depends on
// another if it later changed the same, an enclosing or an enclosed resource,
// such as a folder and a file in it.
type dependencyGraph map[*Call]map[*Call]bool

// dependenciesOf builds the graph from the changes of calls.
func dependenciesOf(calls []*Call) dependencyGraph { return dependenciesIn(calls, nil) }

// dependenciesIn is dependenciesOf for the changes that a filter selects.
func dependenciesIn(calls []*Call, only *resourceFilter) dependencyGraph {
	type touch struct {
		call *Call
		at   int64
	}
	touched := map[string][]touch{}
	for _, c := range calls {
		for i, ch := range c.Changes {
			if !only.selects(ch.Resource) {
				continue
			}
			touched[ch.Resource] = append(touched[ch.Resource], touch{c, c.at[i]})
		}
	}
	over := dependencyGraph{}
	relate := func(a, b touch) {
		switch {
		case a.call == b.call:
		case a.at > b.at:
			over.add(a.call, b.call)
		default:
			over.add(b.call, a.call)
		}
	}
	for resource, here := range touched {
		for i, a := range here {
			for _, b := range here[:i] {
				relate(a, b)
			}
		}
		for above := range Ancestors(resource) {
			for _, a := range here {
				for _, b := range touched[above] {
					relate(a, b)
				}
			}
		}
	}
	return over
}

func (l dependencyGraph) add(upper, lower *Call) {
	if l[upper] == nil {
		l[upper] = map[*Call]bool{}
	}
	l[upper][lower] = true
}

// Ancestors returns the resources that enclose a resource, innermost first: its
// text up to each slash. The result orders effects and lets writers wait for
// each other. It never decides what a call may touch.
func Ancestors(resource string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := strings.Index(resource, "://") + len("://")
		for i := len(resource) - 1; i > start; i-- {
			if resource[i] == '/' && !yield(resource[:i]) {
				return
			}
		}
	}
}

// revertOrder sorts calls, given newest first, so that each comes before those
// that it depends on. Calls that depend on each other stay newest first. Only
// an older remit or a forged journal can contain such calls.
func revertOrder(calls []*Call) []*Call {
	over := dependenciesOf(calls)
	waits := map[*Call]int{} // number of dependent calls that come first
	for _, lower := range over {
		for c := range lower {
			waits[c]++
		}
	}
	sorted := make([]*Call, 0, len(calls))
	for rest := slices.Clone(calls); len(rest) > 0; {
		i := max(slices.IndexFunc(rest, func(c *Call) bool { return waits[c] == 0 }), 0)
		for c := range over[rest[i]] {
			waits[c]--
		}
		sorted = append(sorted, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return sorted
}
