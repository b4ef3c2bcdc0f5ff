package mutation

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
)

// Mutant is a file with one place broken.
type Mutant struct {
	Site
	How  string // the change
	Text []byte // of the whole file
}

// Mutants returns each place of a file broken in each possible way.
func (f *File) Mutants() ([]Mutant, error) {
	var all []Mutant
	for _, s := range f.Sites {
		for _, b := range f.breaks(s) {
			text, err := format.Source(b.text)
			if err != nil {
				return nil, err
			}
			all = append(all, Mutant{s, b.how, text})
		}
	}
	return all, nil
}

type failedMutant struct {
	how  string
	text []byte
}

func (f *File) breaks(s Site) []failedMutant {
	switch n := s.node.(type) {
	case *ast.KeyValueExpr:
		return []failedMutant{{"never durable", f.replaced(n.Value, "false && ("+f.source(n.Value)+")")}}
	case *ast.IfStmt:
		if s.Kind == Check {
			return []failedMutant{{"refuses nothing", f.replaced(n.Cond, "false && ("+f.source(n.Cond)+")")}}
		}
	case *ast.AssignStmt:
		if s.Kind == Lease {
			return []failedMutant{{"nothing is held", f.replaced(n, "func(...any) {}("+f.source(n.Rhs[0])+")")}}
		}
	case *ast.BinaryExpr:
		way := "false"
		if n.Op == token.EQL {
			way = "true"
		}
		return []failedMutant{{"everybody passes", f.replaced(n, way+f.kept(n))}}
	case *ast.CallExpr:
		switch s.Kind {
		case Barrier, Lease:
			return []failedMutant{{map[Kind]string{Barrier: "not synced", Lease: "nobody is kept out"}[s.Kind], f.replaced(n, "func(...any) error { return nil }("+f.operands(n)+")")}}
		case Token:
			return []failedMutant{
				{"always the same", f.replaced(n, "func(...any) bool { return true }("+f.operands(n)+")")},
				{"never the same", f.replaced(n, "func(...any) bool { return false }("+f.operands(n)+")")},
			}
		case Check, Order, None:
		}
	}
	if s.Kind == Order {
		return []failedMutant{{"the other way round", f.swapped(s)}}
	}
	return nil
}

// kept returns an expression with the operands of a comparison, so that no
// variable is unused.
func (f *File) kept(n *ast.BinaryExpr) string {
	always := " || func(...any) bool { return false }("
	if n.Op == token.EQL {
		always = " && func(...any) bool { return true }("
	}
	return always + f.source(n.X) + ", " + f.source(n.Y) + ")"
}

// operands returns the receiver and the arguments of a call.
func (f *File) operands(n *ast.CallExpr) string {
	text := ""
	if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
		text = f.source(sel.X)
	}
	for _, a := range n.Args {
		text += ", " + f.source(a)
	}
	return text
}

func (f *File) offsets(n ast.Node) (from, to int) {
	return f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset
}

func (f *File) source(n ast.Node) string {
	from, to := f.offsets(n)
	return string(f.text[from:to])
}

func (f *File) replaced(n ast.Node, by string) []byte {
	from, to := f.offsets(n)
	return bytes.Join([][]byte{f.text[:from], []byte(by), f.text[to:]}, nil)
}

func (f *File) swapped(s Site) []byte {
	a, b := s.node, s.next
	fromA, toA := f.offsets(a)
	fromB, toB := f.offsets(b)
	return bytes.Join([][]byte{f.text[:fromA], f.text[fromB:toB], f.text[toA:fromB], f.text[fromA:toA], f.text[toB:]}, nil)
}
