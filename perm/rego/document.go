package rego

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/perm"
)

// document builds an input document as an OPA value, field by field: a detour
// over JSON text costs five times as much. The first thing that has no faithful
// JSON form is kept and makes the request invalid, because a rule that sees a
// repaired text may allow another resource than the one that is touched.
type document struct {
	keys *keys
	err  error
}

type field = [2]*ast.Term

// request returns the document of r, equal to its JSON form.
func (k *keys) request(r perm.Request) (*ast.Term, error) {
	r = r.Filled()
	d := &document{keys: k}
	fields := append(make([]field, 0, 10),
		d.is(kPrincipal, d.principal(r.Principal)),
		d.is(kSession, d.session(r.Session)),
		d.is(kTxn, d.object(d.text(kID, r.Txn.ID), d.number(kCalls, r.Txn.Calls), d.number(kDepth, r.Txn.Depth))),
		d.is(kTool, d.tool(r.Tool)),
		d.is(kCall, d.call(r.Call)),
		d.is(kAccess, d.access(r.Access)),
		d.text(kPurpose, string(r.Purpose)),
		d.is(kTime, d.time(r)),
	)
	if len(r.Output) > 0 {
		fields = append(fields, d.is(kOutput, d.raw(r.Output)))
	}
	if len(r.Changes) > 0 {
		fields = append(fields, d.is(kChanges, d.changes(r.Changes)))
	}
	doc := d.object(fields...)
	return doc, d.err
}

func (d *document) principal(p perm.Principal) *ast.Term {
	fields := []field{d.text(kID, p.ID), d.text(kKind, p.Kind), d.is(kRoles, d.list(p.Roles))}
	if len(p.Chain) > 0 {
		fields = append(fields, d.is(kChain, d.list(p.Chain)))
	}
	return d.object(fields...)
}

func (d *document) session(s perm.SessionFacts) *ast.Term {
	tools := make([]field, 0, len(s.Tools))
	for name, t := range s.Tools {
		tools = append(tools, field{d.string(name), d.toolTally(t)})
	}
	recent := make([]*ast.Term, len(s.Recent))
	for i, c := range s.Recent {
		recent[i] = d.object(d.text(kTool, c.Tool), d.text(kStatus, c.Status))
	}
	return d.object(
		d.text(kID, s.ID), d.is(kLabels, d.list(s.Labels)),
		d.is(kTools, d.object(tools...)), d.is(kRecent, ast.ArrayTerm(recent...)),
	)
}

func (d *document) toolTally(t perm.ToolTally) *ast.Term {
	fields := d.tally(t.Tally)
	if len(t.Windows) > 0 {
		windows := make([]field, 0, len(t.Windows))
		for name, w := range t.Windows {
			windows = append(windows, field{d.string(name), d.object(d.tally(w)...)})
		}
		fields = append(fields, d.is(kWindows, d.object(windows...)))
	}
	return d.object(fields...)
}

func (d *document) tally(t perm.Tally) []field {
	fields := append(make([]field, 0, 6),
		d.number(kRun, t.Run), d.number(kDenied, t.Denied),
		d.number(kFailed, t.Failed), d.number(kInFlight, t.InFlight),
	)
	if len(t.Sums) > 0 {
		sums := make([]field, 0, len(t.Sums))
		for name, n := range t.Sums {
			sums = append(sums, field{d.string(name), d.decimal(n)})
		}
		fields = append(fields, d.is(kSums, d.object(sums...)))
	}
	return fields
}

func (d *document) tool(t perm.ToolFacts) *ast.Term {
	return d.object(
		d.text(kName, t.Name), d.text(kVersion, t.Version), d.is(kTags, d.list(t.Tags)),
		d.text(kDigest, t.Digest), d.text(kProvenance, t.Provenance),
		d.flag(kCanVerify, t.CanVerify), d.flag(kCanRevert, t.CanRevert),
		d.text(kConfinement, t.Confinement), d.text(kDestination, t.Destination), d.text(kGrade, t.Grade),
	)
}

func (d *document) call(c perm.CallFacts) *ast.Term {
	args := ast.NullTerm()
	if len(c.Args) > 0 {
		args = d.raw(c.Args)
	}
	return d.object(
		d.text(kID, c.ID), d.is(kArgs, args),
		d.text(kEffectClass, c.EffectClass), d.flag(kDeclared, c.Declared),
		d.is(kBatch, d.object(d.number(kIndex, c.Batch.Index), d.number(kCount, c.Batch.Count))),
	)
}

func (d *document) access(a perm.AccessFacts) *ast.Term {
	fields := append(make([]field, 0, 4),
		d.text(kAction, string(a.Action)), d.is(kResource, d.resource(a.Resource)), d.flag(kDynamic, a.Dynamic))
	return d.object(d.optional(fields, kMethod, a.Method)...)
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

func (d *document) changes(list []perm.ChangeFacts) *ast.Term {
	terms := make([]*ast.Term, len(list))
	for i, c := range list {
		f := []field{d.is(kResource, d.resource(c.Resource)), d.text(kKind, c.Kind)}
		f = d.optional(f, kBefore, c.Before)
		terms[i] = d.object(d.optional(f, kAfter, c.After)...)
	}
	return ast.ArrayTerm(terms...)
}

func (d *document) time(r perm.Request) *ast.Term {
	text, err := r.Time.MarshalText()
	if err != nil {
		d.fail("the time is outside the years 0 to 9999")
	}
	return ast.StringTerm(string(text))
}

// raw reads a JSON text that was decoded strictly before; here it only has to
// be JSON.
func (d *document) raw(text json.RawMessage) *ast.Term {
	if !utf8.Valid(text) || !json.Valid(text) {
		d.fail("the arguments or the output are not JSON")
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
	if first := n[0]; !json.Valid([]byte(n)) || (first != '-' && (first < '0' || first > '9')) {
		d.fail("a sum is not a number")
	}
	return ast.NumberTerm(n)
}

func (d *document) string(s string) *ast.Term {
	if !utf8.ValidString(s) {
		d.fail("a text is not UTF-8")
	}
	return ast.StringTerm(s)
}

func (d *document) list(texts []string) *ast.Term {
	terms := make([]*ast.Term, len(texts))
	for i, s := range texts {
		terms[i] = d.string(s)
	}
	return ast.ArrayTerm(terms...)
}

func (d *document) is(k key, value *ast.Term) field { return field{d.keys[k], value} }

func (d *document) text(k key, s string) field { return d.is(k, d.string(s)) }

func (d *document) number(k key, n int) field { return d.is(k, ast.InternedTerm(n)) }

func (d *document) flag(k key, b bool) field { return d.is(k, ast.InternedTerm(b)) }

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
