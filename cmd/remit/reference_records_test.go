package main

import (
	"go/ast"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/record"
)

// recordTypes are the declarations of types in the package of records, by name.
type recordTypes map[string]*ast.TypeSpec

func typesOf(t *testing.T, dir string) recordTypes {
	t.Helper()
	found := recordTypes{}
	for _, file := range parsePackage(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			if group, ok := n.(*ast.GenDecl); ok {
				for _, spec := range group.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						if found[s.Name.Name] = s; s.Doc == nil {
							s.Doc = group.Doc
						}
					}
				}
			}
			return true
		})
	}
	return found
}

// word returns a type in the words of JSON, and the name of the struct of the
// package that it contains, if there is one.
func (all recordTypes) word(e ast.Expr) (text, inner string) {
	switch x := e.(type) {
	case *ast.StarExpr:
		return all.word(x.X)
	case *ast.ArrayType:
		if id, ok := x.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "base64", ""
		}
		text, inner = all.word(x.Elt)
		return "list of " + text, inner
	case *ast.MapType:
		text, inner = all.word(x.Value)
		return "object: " + text + " by name", inner
	case *ast.Ident:
		s, own := all[x.Name]
		if !own {
			return goType(e), ""
		}
		if _, object := s.Type.(*ast.StructType); object {
			return "[" + x.Name + "](#" + strings.ToLower(x.Name) + ")", x.Name
		}
		return all.word(s.Type)
	case *ast.SelectorExpr:
		if text := goType(e); text != "" {
			return text, ""
		}
		return map[string]string{"Class": "string", "Token": "string", "Effect": "string", "Coverage": "string", "Digest": "string", "Action": "string", "Duration": "integer", "Verdict": "string"}[x.Sel.Name], ""
	}
	return "object", ""
}

// rows returns a row for each member of a struct, and the structs that they
// contain. The members of an embedded struct are members of the struct.
func (all recordTypes) rows(t *testing.T, name string) (text string, inner []string) {
	t.Helper()
	body, ok := all[name].Type.(*ast.StructType)
	require.True(t, ok, name)
	for _, f := range body.Fields.List {
		if f.Tag == nil {
			if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 && all[id.Name] != nil {
				more, deep := all.rows(t, id.Name)
				text, inner = text+more, append(inner, deep...)
			}
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		require.NoError(t, err)
		member, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		kind, of := all.word(f.Type)
		if kind == "" {
			kind = "object"
		}
		if inner = append(inner, of); strings.Contains(options, "omit") {
			kind += ", or absent"
		}
		text += row(code(member), kind, cell(comment(f.Comment, f.Doc)))
	}
	return text, inner
}

// TestReferenceRecords holds the members of the bodies of records.
func TestReferenceRecords(t *testing.T) {
	const dir = "revert/record"
	all, kinds := typesOf(t, dir), textConstants(t, dir)
	text, seen, queue := "", map[string]bool{"": true}, []string{}
	section := func(title, name, lead string) {
		rows, inner := all.rows(t, name)
		text += "\n## " + title + "\n\n" + lead + "\n"
		if rows != "" {
			text += "\n" + header("member", "type", "meaning") + rows
		}
		queue = append(queue, inner...)
	}
	for _, kind := range record.Kinds() {
		var of described
		for _, c := range kinds {
			if c.value == string(kind) {
				of = c
			}
		}
		require.NotEmpty(t, of.text, "%s has no comment", kind)
		section(string(kind), strings.TrimPrefix(of.name, "Kind"), sentence(of.text))
	}
	text += "\n# Objects in them\n"
	for len(queue) > 0 {
		name := queue[0]
		if queue = queue[1:]; !seen[name] {
			seen[name] = true
			section(name, name, sentence(strings.TrimPrefix(comment(all[name].Doc), name+" is ")))
		}
	}
	holdPart(t, "record-members.md", "members of records", text)
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimRight(strings.ToUpper(text[:1])+text[1:], ".") + "."
}
