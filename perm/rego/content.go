package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// content adds the known content after a change.
func (d *document) content(fields []field, c perm.ChangeFacts) []field {
	if c.Text != nil {
		fields = append(fields, d.text(kText, *c.Text))
	}
	if c.MediaType != "" {
		fields = append(fields, field{ast.StringTerm("media_type"), ast.StringTerm(c.MediaType)})
	}
	if c.Size != 0 {
		fields = append(fields, field{ast.StringTerm("size"), ast.InternedTerm(c.Size)})
	}
	for _, flag := range []struct {
		name string
		is   bool
	}{{"cut", c.Cut}, {"binary", c.Binary}, {"masked", c.Masked}} {
		if flag.is {
			fields = append(fields, field{ast.StringTerm(flag.name), ast.InternedTerm(true)})
		}
	}
	return fields
}

// contentNames returns the fields of a change that hold its content, and the
// functions that reach fields without their names.
func contentNames() []string {
	return []string{"text", "media_type", "size", "cut", "binary", "masked", "walk", "marshal", "marshal_with_options"}
}

// readsContent reports whether a query with purpose verify can read the content
// after changes. It can if it reads changes and names a content field anywhere.
func (r *ruleset) readsContent() bool {
	if !r.queries[perm.PurposeVerify].plan.reads["changes"] {
		return false
	}
	var rules []*ast.Rule
	for _, set := range setNames() {
		if asked(set, perm.PurposeVerify) {
			rules = append(rules, r.rulesOf(set)...)
		}
	}
	reader := newReader(r.compiler)
	reads := reader.all(rules)
	whole := func(of read) bool { return len(of.path) == 0 }
	named := func(name string) bool { return reader.named[name] }
	return slices.ContainsFunc(reads, whole) || slices.ContainsFunc(contentNames(), named)
}

// ReadsContent reports whether the policy reads the content after changes. If
// not, the runtime reads no file for it.
func (e *Engine) ReadsContent() bool { return e != nil && e.content }

// ReadsContent reports whether the current policy reads the content after
// changes.
func (l *SwappableEngine) ReadsContent() bool { return l.current.Load().ReadsContent() }

// ReadsContent reports whether the current policy reads the content after
// changes.
func (r *Reloader) ReadsContent() bool { return r.live.ReadsContent() }
