package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Kind is the purpose of a place.
type Kind string

// The kinds of places.
const (
	Barrier Kind = "barrier"
	Token   Kind = "token"
	Lease   Kind = "lease"
	Check   Kind = "check"
	Order   Kind = "order"
	None    Kind = "none" // nothing depends on it
)

// Site is one place.
type Site struct {
	Name string // of the function, the kind and, from the second on, its number: "(*swap).place token 2"
	Kind Kind
	Line int
	node ast.Node
	next ast.Node // for Order: the node to swap with
}

// File is a source file and the places in it.
type File struct {
	Path  string
	Sites []Site
	text  []byte
	set   *token.FileSet
}

// TagError is a place without its tag, or a tag without its place.
type TagError struct {
	Line int
	Text string
}

const prefix = "//mutant:"

// Read finds the places of a file. Places with a TagError are not in Sites.
func Read(path string, text []byte) (*File, []TagError, error) {
	f := &File{Path: path, text: text, set: token.NewFileSet()}
	parsed, err := parser.ParseFile(f.set, path, text, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	r := &reader{File: f, tags: map[int]*tag{}, names: map[string]int{}}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			r.comment(c)
		}
	}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			r.function = functionName(fn)
			r.block(fn.Body.List)
		}
	}
	for _, t := range r.tags {
		if !t.used {
			r.complain(t.line, "the tag %s%s stands above no such place", prefix, t.kind)
		}
	}
	slices.SortFunc(r.complaints, func(a, b TagError) int { return a.Line - b.Line })
	return f, r.complaints, nil
}

// tag is a comment; line is the line below it, with its statement.
type tag struct {
	kind Kind
	line int
	used bool
}

type reader struct {
	*File
	tags       map[int]*tag // by line
	names      map[string]int
	function   string
	complaints []TagError
}

func (r *reader) complain(line int, format string, args ...any) {
	r.complaints = append(r.complaints, TagError{line, fmt.Sprintf(format, args...)})
}

func (r *reader) comment(c *ast.Comment) {
	rest, ok := strings.CutPrefix(c.Text, prefix)
	if !ok {
		return
	}
	line := r.set.Position(c.Pos()).Line
	kind, why, _ := strings.Cut(rest, " ")
	switch k := Kind(kind); {
	case !slices.Contains([]Kind{Barrier, Token, Lease, Check, Order, None}, k):
		r.complain(line, "%s is no kind of place", kind)
	case k == None && strings.TrimSpace(why) == "":
		r.complain(line, "a place on which nothing depends says why")
	default:
		r.tags[line+1] = &tag{kind: k, line: line}
	}
}

// block visits consecutive statements.
func (r *reader) block(list []ast.Stmt) {
	for i, s := range list {
		if t := r.tags[r.line(s)]; t != nil && t.kind == Order {
			t.used = true
			if i+1 == len(list) {
				r.complain(t.line, "nothing follows what has to come first")
				continue
			}
			r.add(Order, s, list[i+1])
		} else if refusal, ok := s.(*ast.IfStmt); ok && t != nil && t.kind == Check {
			t.used = true
			r.add(Check, refusal, nil)
		}
		r.statement(s)
	}
}

func (r *reader) line(n ast.Node) int { return r.set.Position(n.Pos()).Line }

// statement visits the expressions of one statement, and then the statements in
// it.
func (r *reader) statement(s ast.Stmt) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			r.block(n.List)
			return false
		case *ast.CaseClause:
			for _, e := range n.List {
				r.expressions(e, r.line(n))
			}
			r.block(n.Body)
			return false
		case *ast.CommClause:
			r.block(n.Body)
			return false
		}
		r.place(n, r.line(s))
		return true
	})
}

// expressions visits an expression whose tag is above line.
func (r *reader) expressions(e ast.Expr, line int) {
	ast.Inspect(e, func(n ast.Node) bool {
		if b, ok := n.(*ast.BlockStmt); ok {
			r.block(b.List)
			return false
		}
		r.place(n, line)
		return true
	})
}

// place adds a node that is a place. Its tag is above its own line, if the
// statement has several places, or above its statement.
func (r *reader) place(n ast.Node, statement int) {
	kind := kindOf(n)
	if kind == "" {
		return
	}
	t := r.tags[r.line(n)]
	if t == nil || t.kind == Order || t.kind == Check {
		t = r.tags[statement]
	}
	switch {
	case t == nil || t.kind == Order || t.kind == Check:
		r.complain(r.line(n), "this %s in %s has no tag: %s%s above it, or %snone and why", kind, r.function, prefix, kind, prefix)
	case t.kind == None:
		t.used = true
	case t.kind != kind:
		r.complain(r.line(n), "this is a %s, and its tag says %s", kind, t.kind)
	default:
		t.used = true
		r.add(kind, n, nil)
	}
}

func (r *reader) add(kind Kind, node, next ast.Node) {
	name := r.function + " " + string(kind)
	r.names[name]++
	if n := r.names[name]; n > 1 {
		name = fmt.Sprint(name, " ", n)
	}
	r.Sites = append(r.Sites, Site{Name: name, Kind: kind, Line: r.line(node), node: node, next: next})
}

// kindOf returns the kind of place of a node, or "".
func kindOf(n ast.Node) Kind {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Durable" {
			return Barrier
		}
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
			return called(sel.Sel.Name, len(n.Args))
		}
	case *ast.AssignStmt:
		if sel, ok := n.Lhs[0].(*ast.SelectorExpr); ok && len(n.Lhs) == 1 && (sel.Sel.Name == "Fence" || sel.Sel.Name == "Claims") {
			return Lease
		}
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && (fenced(n.X) || fenced(n.Y)) {
			return Lease
		}
	}
	return ""
}

func called(name string, args int) Kind {
	switch {
	case name == "Sync" && args == 0, name == "SyncDir" && args == 1, name == "SyncAll" && args == 0:
		return Barrier
	case (name == "Same" || name == "same") && args > 0:
		return Token
	case name == "TryLease" && args <= 1:
		return Lease
	}
	return ""
}

// fenced reports whether an expression is a field of a fence.
func fenced(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch x := sel.X.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "Fence"
	case *ast.Ident:
		return x.Name == "fence"
	}
	return false
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	switch t := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		if id, ok := t.X.(*ast.Ident); ok {
			return "(*" + id.Name + ")." + f.Name.Name
		}
	case *ast.Ident:
		return t.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
