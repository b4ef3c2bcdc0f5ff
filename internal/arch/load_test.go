package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the folder of the module, seen from this package's.
const root = "../.."

// load lists the packages of the module as goos sees them.
func load(t *testing.T, goos string) []pkg {
	t.Helper()
	const fields = "ImportPath,Dir,Name,Doc,Imports,TestImports,XTestImports,Deps,TestGoFiles,XTestGoFiles,DepOnly"
	cmd := exec.Command("go", "list", "-e", "-deps", "-json="+fields, "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Name, Doc         string
			Imports, TestImports, XTestImports []string
			Deps, TestGoFiles, XTestGoFiles    []string
			DepOnly                            bool
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		require.NoError(t, err)
		dir, local := folder(p.ImportPath)
		if !local || p.DepOnly {
			continue
		}
		loaded := pkg{
			dir: dir, name: p.Name, doc: p.Doc, imports: p.Imports, deps: p.Deps,
			testImports: slices.Concat(p.TestImports, p.XTestImports),
		}
		for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			loaded.examples = append(loaded.examples, examplesIn(file)...)
		}
		pkgs = append(pkgs, loaded)
	}
}

// source is one text file of the tree; file is nil unless it is Go code that is built.
type source struct {
	path, text string
	fset       *token.FileSet
	file       *ast.File
}

func (s source) dir() string       { return path.Dir(s.path) }
func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGenerated() bool { return s.file != nil && ast.IsGenerated(s.file) }

// tree reads every text file of the module, apart from what was built.
func tree(t *testing.T) (files []source) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == ".git" && !entry.IsDir() { // of a second working tree
			return nil
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "coverage"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return err
		}
		s := source{path: name, text: string(data)}
		if path.Ext(name) == ".go" && !slices.Contains(strings.Split(name, "/"), "testdata") {
			s.fset = token.NewFileSet()
			s.file, err = parser.ParseFile(s.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		}
		files = append(files, s)
		return err
	})
	require.NoError(t, err)
	return files
}
