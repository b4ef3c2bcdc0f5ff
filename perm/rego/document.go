package rego

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// document builds an input document as an OPA value, field by field. The detour
// over JSON text costs five times as much. The request is checked. The document
// keeps the first value without a faithful JSON form.
type document struct {
	keys *keys
	err  error
}

type field = [2]*ast.Term

func (d *document) tools(r *perm.Request) *ast.Term {
	tools := make([]field, 0, r.Session.Tools.Len())
	for name, t := range r.Session.Tools.All() {
		tools = append(tools, field{ast.StringTerm(name), d.toolCountsTerm(t)})
	}
	return d.object(tools...)
}

func (d *document) recent(r *perm.Request) *ast.Term {
	recent := make([]*ast.Term, len(r.Session.Recent))
	for i, c := range r.Session.Recent {
		recent[i] = d.object(d.text(kTool, c.Tool), d.text(kStatus, c.Status))
	}
	return ast.ArrayTerm(recent...)
}

func (d *document) toolCountsTerm(t perm.ToolCounts) *ast.Term {
	fields := d.countsFields(t.Counts)
	if len(t.Windows) > 0 {
		windows := make([]field, 0, len(t.Windows))
		for name, w := range t.Windows {
			windows = append(windows, field{ast.StringTerm(name), d.object(d.countsFields(w)...)})
		}
		fields = append(fields, d.is(kWindows, d.object(windows...)))
	}
	return d.object(fields...)
}

func (d *document) countsFields(t perm.Counts) []field {
	fields := append(make([]field, 0, 6),
		d.number(kRun, t.Run), d.number(kDenied, t.Denied),
		d.number(kFailed, t.Failed), d.number(kInFlight, t.InFlight),
	)
	if len(t.Sums) > 0 {
		sums := make([]field, 0, len(t.Sums))
		for name, n := range t.Sums {
			sums = append(sums, field{ast.StringTerm(name), d.decimal(n)})
		}
		fields = append(fields, d.is(kSums, d.object(sums...)))
	}
	return fields
}

func (d *document) resource(r perm.ResourceFacts) *ast.Term {
	f := append(make([]field, 0, 8), d.text(kKind, r.Kind), d.text(kText, r.Text))
	f = d.optional(f, kRoot, r.Root)
	f = d.optional(f, kPath, r.Path)
	f = d.optionalList(f, kSegments, r.Segments)
	f = d.optional(f, kName, r.Name)
	f = d.optional(f, kExt, r.Ext)
	f = d.optional(f, kScheme, r.Scheme)
	f = d.optional(f, kHost, r.Host)
	if r.Port != 0 {
		f = append(f, d.number(kPort, r.Port))
	}
	f = d.optional(f, kDatabase, r.Database)
	f = d.optional(f, kTable, r.Table)
	f = d.optional(f, kStatement, r.Statement)
	f = d.optional(f, kProgram, r.Program)
	f = d.optionalList(f, kArgv, r.Argv)
	f = d.optional(f, kServer, r.Server)
	return d.object(d.optional(f, kTool, r.Tool)...)
}

func (d *document) changes(r *perm.Request) *ast.Term {
	if len(r.Changes) == 0 {
		return nil
	}
	list := r.Changes
	terms := make([]*ast.Term, len(list))
	for i, c := range list {
		f := []field{d.is(kResource, d.resource(c.Resource)), d.text(kKind, c.Kind)}
		f = d.optional(f, kBefore, c.Before)
		f = d.optional(f, kAfter, c.After)
		if c.Git != nil {
			f = append(f, field{ast.StringTerm("git"), d.git(c.Git)})
		}
		terms[i] = d.object(d.content(f, c)...)
	}
	return ast.ArrayTerm(terms...)
}

func (*document) time(r *perm.Request) *ast.Term {
	return ast.StringTerm(r.Time.Format(time.RFC3339Nano))
}

// raw parses a JSON text that was checked; none is null.
func (d *document) raw(text json.RawMessage) *ast.Term {
	if len(text) == 0 {
		return ast.NullTerm()
	}
	value, err := ast.ValueFromReader(bytes.NewReader(text))
	if err != nil {
		d.fail("the arguments or the output are not JSON")
		return ast.NullTerm()
	}
	return ast.NewTerm(value)
}

func (d *document) decimal(n json.Number) *ast.Term {
	if n == "" { // as encoding/json writes it
		n = "0"
	}
	return ast.NumberTerm(n)
}

func (d *document) list(texts []string) *ast.Term {
	terms := make([]*ast.Term, len(texts))
	for i, s := range texts {
		terms[i] = ast.StringTerm(s)
	}
	return ast.ArrayTerm(terms...)
}

func (d *document) is(k key, value *ast.Term) field { return field{d.keys[k], value} }

func (d *document) text(k key, s string) field { return d.is(k, ast.StringTerm(s)) }

func (d *document) number(k key, n int) field { return d.is(k, ast.InternedTerm(n)) }

func (d *document) object(fields ...field) *ast.Term { return ast.ObjectTerm(fields...) }

func (d *document) optional(fields []field, k key, s string) []field {
	if s == "" {
		return fields
	}
	return append(fields, d.text(k, s))
}

func (d *document) optionalList(fields []field, k key, texts []string) []field {
	if len(texts) == 0 {
		return fields
	}
	return append(fields, d.is(k, d.list(texts)))
}

// fail keeps the first failure. The text never repeats a value.
func (d *document) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrInput, why)
	}
}
