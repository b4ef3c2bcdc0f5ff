package rego

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// plan lists what the rules for one purpose can read. The engine builds these
// parts of an input document, and compares them before it reuses a cached
// decision.
type plan struct {
	root  *planNode
	key   []func(*perm.Request, []byte) ([]byte, bool)
	notes []UncheckedRef  // why no decision is cached
	reads map[string]bool // paths of the parts that rules read

	readsCounts, readsChanges, readsData bool
}

// planNode is a place in the part of the document that the engine builds.
type planNode struct {
	name  *ast.Term
	part  *inputField // part of a leaf
	below []*planNode
}

// at returns the node at the beginning of a path that is a leaf, with the rest of the
// path below it; or the node of the whole path.
func (n *planNode) at(path []*ast.Term) (*planNode, []*ast.Term) {
	if n.part != nil || len(path) == 0 {
		return n, path
	}
	for _, b := range n.below {
		if b.name.Equal(path[0]) {
			return b.at(path[1:])
		}
	}
	return nil, nil
}

// newPlan selects the parts that rules read. It also compares the purpose and
// the effect class.
func newPlan(list []inputField, reads []read) *plan {
	p := &plan{root: &planNode{}, reads: map[string]bool{}}
	for i := range list {
		path := list[i].path
		touched := list[i].touched(reads)
		if len(touched) > 0 {
			p.root.insert(strings.Split(path, "."), &list[i])
			p.reads[path] = true
		}
		if len(touched) > 0 || path == "purpose" || path == "call.effect_class" {
			p.add(&list[i], touched)
		}
	}
	p.readsCounts, p.readsChanges, p.readsData = p.reads["session.tools"], p.reads["changes"], p.reads["session.data"]
	return p
}

// touched returns the reads that depend on p.
func (p *inputField) touched(reads []read) []read {
	path := strings.Split(p.path, ".")
	var out []read
	for _, r := range reads {
		n := min(len(path), len(r.path))
		if slices.Equal(path[:n], r.path[:n]) {
			out = append(out, r)
		}
	}
	return out
}

// add adds a part that rules read to the key, whole or by the members that they
// read. If there cannot be a key, it records the reason.
func (p *plan) add(of *inputField, reads []read) {
	if of.key == nil {
		for _, r := range reads {
			p.notes = append(p.notes, of.note(r))
		}
		return
	}
	depth := strings.Count(of.path, ".") + 1
	whole := of.free == nil || slices.ContainsFunc(reads, func(r read) bool { return len(r.path) <= depth })
	if whole {
		p.key = append(p.key, of.whole)
		return
	}
	var paths [][]string
	for _, r := range reads {
		paths = append(paths, r.path[depth:])
	}
	slices.SortFunc(paths, slices.Compare[[]string])
	for _, path := range slices.CompactFunc(paths, slices.Equal[[]string]) {
		p.key = append(p.key, memberKey(of.free, path))
	}
}

func (p *inputField) whole(r *perm.Request, key []byte) ([]byte, bool) { return p.key(r, key), true }

// memberKey compares one member of a free document. A missing member differs
// from every text, and an unreadable one has no key.
func memberKey(get func(*perm.Request) json.RawMessage, path []string) func(*perm.Request, []byte) ([]byte, bool) {
	return func(r *perm.Request, key []byte) ([]byte, bool) {
		text, err := member(get(r), path)
		if err != nil {
			return nil, false
		}
		if text == nil {
			return append(key, 0), true
		}
		return appendText(append(key, 1), text), true
	}
}

func (p *inputField) note(r read) UncheckedRef {
	whole := strings.Join(append([]string{"input"}, r.path...), ".")
	if len(r.path) > strings.Count(p.path, ".") {
		return UncheckedRef{At: r.at, Text: fmt.Sprintf("answers are not remembered: %s differs from call to call", whole)}
	}
	return UncheckedRef{At: r.at, Text: fmt.Sprintf("answers are not remembered: %s is read whole, and input.%s differs from call to call", whole, p.path)}
}

func (n *planNode) insert(path []string, p *inputField) {
	i := slices.IndexFunc(n.below, func(b *planNode) bool { return b.name.Value.Compare(ast.String(path[0])) == 0 })
	if i < 0 {
		i = len(n.below)
		n.below = append(n.below, &planNode{name: ast.StringTerm(path[0])})
	}
	if len(path) == 1 {
		n.below[i].part = p
		return
	}
	n.below[i].insert(path[1:], p)
}

// keyOf appends the key of a request to key, or returns false if it has none.
func (p *plan) keyOf(r *perm.Request, key []byte) ([]byte, bool) {
	//mutant:check
	if len(p.notes) > 0 {
		return key, false
	}
	for _, add := range p.key {
		var ok bool
		if key, ok = add(r, key); !ok || len(key) > maxKey {
			return key, false
		}
	}
	return key, true
}
