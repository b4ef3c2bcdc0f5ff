package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/remit-dev/remit/perm"
)

// modules is a policy between its text and its compiled form.
type modules struct {
	parsed map[string]*ast.Module // files that decide, by name
	tests  map[string]*ast.Module // *_test.rego
	names  []string               // names of parsed, sorted
	packs  map[string]bool        // files of packs; findings for the author exclude them
	// leftOut holds the names that rules without a place in parsed use: check
	// left these rules out, because it found errors in them.
	leftOut map[string]bool
}

// parse parses every file before it returns an error.
func parse(files []file) (*modules, error) {
	var found problems
	m := &modules{parsed: map[string]*ast.Module{}, tests: map[string]*ast.Module{}, packs: map[string]bool{}}
	opts := ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()}
	for _, f := range files {
		if f.pack {
			m.packs[f.name] = true
		}
		mod, err := ast.ParseModuleWithOpts(f.name, f.text, opts)
		switch {
		case err != nil:
			found.addOPA(err, m.fix(f.text))
		case mod == nil:
			found.add(f.name, fixEmpty, "empty module")
		case f.isTest():
			m.tests[f.name] = mod
		default:
			m.parsed[f.name] = mod
			m.names = append(m.names, f.name)
		}
	}
	return m, found.err()
}

// own returns the names of the author's files that decide.
func (m *modules) own() []string {
	return slices.DeleteFunc(slices.Clone(m.names), func(name string) bool { return m.packs[name] })
}

// ownNotes removes the findings about files of packs.
func (m *modules) ownNotes(notes []UncheckedRef) []UncheckedRef {
	return slices.DeleteFunc(notes, func(n UncheckedRef) bool { return m.packs[n.At[:max(0, strings.LastIndexByte(n.At, ':'))]] })
}

// newCompiler returns a compiler that knows the input document and lacks the
// built-ins that a decision must not use. It drops calls of print.
func newCompiler() (*ast.Compiler, error) {
	var schema any
	if err := json.Unmarshal(perm.InputSchema(), &schema); err != nil {
		return nil, fmt.Errorf("rego: the input schema: %w", err)
	}
	anyOf(schema)
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	return ast.NewCompiler().
		WithDefaultRegoVersion(ast.RegoV1).
		WithCapabilities(capabilities()).
		WithSchemas(schemas), nil
}

// anyOf writes each list of types as alternatives, because OPA reads only one
// type of a list.
func anyOf(node any) {
	switch node := node.(type) {
	case []any:
		for _, below := range node {
			anyOf(below)
		}
	case map[string]any:
		if list, ok := node["type"].([]any); ok {
			delete(node, "type")
			alternatives := make([]any, len(list))
			for i, one := range list {
				alternatives[i] = map[string]any{"type": one}
			}
			node["anyOf"] = alternatives
		}
		for _, below := range node {
			anyOf(below)
		}
	}
}

// compile checks and compiles the text of the author.
func (m *modules) compile() (*ast.Compiler, error) {
	c, err := newCompiler()
	if err != nil {
		return nil, err
	}
	if c.Compile(m.parsed); c.Failed() {
		var found problems
		found.addOPA(c.Errors, m.fix(""))
		return nil, found.err()
	}
	return c, nil
}

// place is the position of a rule of a set.
type place struct {
	at, set string
}

// located returns the modules with a copy of each rule of a set, and the
// positions by n. A copy has a private name, and its elements are [n, element].
// The originals stay, because other rules can refer to them. The copies see the
// same imports and helpers, because they are in the same module.
func (m *modules) located() (map[string]*ast.Module, []place) {
	out := make(map[string]*ast.Module, len(m.parsed))
	var places []place
	for _, name := range m.names {
		mod := m.parsed[name].Copy()
		for _, rule := range m.parsed[name].Rules {
			if set := setOf(m.parsed[name], rule); set != "" {
				mod.Rules = append(mod.Rules, locatedCopy(mod, rule, set, len(places)))
				places = append(places, place{at: at(rule.Loc()), set: set})
			}
		}
		out[name] = mod
	}
	return out, places
}

func locatedCopy(mod *ast.Module, rule *ast.Rule, set string, n int) *ast.Rule {
	private := privateName(set)
	c := rule.Copy()
	c.Module = mod
	c.Annotations = nil
	c.Head.Name = ast.Var(private)
	c.Head.Reference = ast.Ref{ast.VarTerm(private).SetLocation(rule.Head.Location)}
	// OPA shares the terms of small numbers, so the location needs a new term.
	number := &ast.Term{Value: ast.IntNumberTerm(n).Value, Location: rule.Head.Location}
	c.Head.Key = ast.ArrayTerm(number, c.Head.Key).SetLocation(rule.Head.Location)
	return c
}

// setOf returns the set that a rule adds to, or "" for any other rule.
func setOf(mod *ast.Module, rule *ast.Rule) string {
	if !inRemit(mod) || !isPartialSet(rule) {
		return ""
	}
	if name := headName(rule); isSet(name) {
		return name
	}
	return ""
}

func inRemit(mod *ast.Module) bool { return packageName(mod) == "remit" }

func packageName(mod *ast.Module) string {
	path := mod.Package.Path
	if len(path) < 2 {
		return ""
	}
	return path[1:].String()
}

// isPartialSet reports whether a rule has the form "name contains element".
func isPartialSet(rule *ast.Rule) bool {
	return len(rule.Head.Reference) == 1 && rule.Head.Key != nil && rule.Head.Value == nil &&
		len(rule.Head.Args) == 0 && !rule.Default && rule.Else == nil
}

// headName returns the first part of a rule's name.
func headName(rule *ast.Rule) string {
	if ref := rule.Head.Ref(); len(ref) > 0 {
		if name, ok := ref[0].Value.(ast.Var); ok {
			return string(name)
		}
	}
	return string(rule.Head.Name)
}

// at writes a location as file:line.
func at(loc *ast.Location) string {
	if loc == nil {
		return ""
	}
	if loc.Row == 0 {
		return loc.File
	}
	return fmt.Sprintf("%s:%d", loc.File, loc.Row)
}

// spot writes a location as file:line:column.
func spot(loc *ast.Location) string {
	if loc == nil || loc.Row == 0 || loc.Col == 0 {
		return at(loc)
	}
	return fmt.Sprintf("%s:%d", at(loc), loc.Col)
}

// lineOf takes the column off a place.
func lineOf(spot string) string { return spot[:max(0, strings.LastIndexByte(spot, ':'))] }

// written returns the source line of a location, as the start of a message.
func written(loc *ast.Location) string {
	if loc == nil || len(loc.Text) == 0 || len(loc.Text) > 120 || strings.Contains(string(loc.Text), "\n") {
		return ""
	}
	return string(loc.Text) + ": "
}

// addOPA adds the errors of OPA's parser and compiler.
func (p *problems) addOPA(err error, fix func(*ast.Error) string) {
	var list ast.Errors
	var one *ast.Error
	if errors.As(err, &one) {
		list = ast.Errors{one}
	} else if !errors.As(err, &list) {
		p.add("", "", "%v", err)
		return
	}
	for i, e := range list {
		if i > 0 && fix(e) == fixSyntax && at(e.Location) == at(list[i-1].Location) {
			continue // after an error, the parser reports the rest of the line
		}
		text := e.Message
		if d, ok := e.Details.(*ast.UnificationErrDetail); ok {
			text = fmt.Sprintf("%s%s: %s against %s", written(e.Location), text, types.Sprint(d.Left), types.Sprint(d.Right))
		}
		p.add(spot(e.Location), fix(e), "%s", text)
	}
}
