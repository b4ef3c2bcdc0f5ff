package arch_test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// whole are the packages that decide: each statement of theirs is run by a test, or uncovered.txt says why not.
var whole = []string{"perm", "ctxperm", "perm/rego", "revert"}

// leastCovered is the share of statements, in percent, that tests run of every other package.
const leastCovered = 90

// elsewhere are the packages whose code runs as a process that no profile reaches, and the tests that stand in for it.
var elsewhere = map[string]string{
	"mcp/conformance":             "make conformance runs it, over a suite that comes from npm; its tests try what reads and judges, and that the fixtures are served",
	"internal/proof/agentclients": "make prove runs it, with programs that come from npm",
	"internal/shim": "process 1 of a sandbox has no file to leave counters in, and is killed; the tests of internal/sandbox try each of " +
		"its layers with it and without it, and those of its own what can be tried in the process of a test",
}

// TestCoverage judges the profile that REMIT_COVER names; `make cover` writes one and sets it.
func TestCoverage(t *testing.T) {
	name := os.Getenv("REMIT_COVER")
	if name == "" {
		t.Skip("REMIT_COVER names no profile: make cover")
	}
	profile, err := os.ReadFile(name)
	require.NoError(t, err)
	exceptions, err := os.ReadFile("uncovered.txt")
	require.NoError(t, err)
	blocks, err := parseProfile(string(profile))
	require.NoError(t, err)
	for i, b := range blocks {
		if b.count == 0 {
			blocks[i].fn, blocks[i].line = where(t, b)
		}
	}
	for _, s := range shares(blocks) {
		t.Logf("%6.1f %%  %s", s.percent(), s.dir)
	}
	report(t, uncovered(blocks, parseExceptions(string(exceptions))))
}

// block is a run of statements, and how often tests ran it.
type block struct {
	file       string // relative to the root of the module
	from, to   int    // lines
	column     int
	statements int
	count      int
	fn, line   string // the function around it and its first line, of a block that was not run
}

func (b block) dir() string { return path.Dir(b.file) }

var profileLine = regexp.MustCompile(`^(.+):(\d+)\.(\d+),(\d+)\.(\d+) (\d+) (\d+)$`)

// parseProfile reads a profile, in which each test binary has its own line for a block that several have linked.
func parseProfile(text string) ([]block, error) {
	byPlace := map[string]int{}
	var blocks []block
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "mode: ") {
			continue
		}
		m := profileLine.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("line %d of the profile: %q", n, lines.Text())
		}
		file, _ := folder(m[1])
		number := func(i int) int { v, _ := strconv.Atoi(m[i]); return v }
		place := strings.Join(m[1:6], " ")
		i, ok := byPlace[place]
		if !ok {
			i = len(blocks)
			byPlace[place] = i
			blocks = append(blocks, block{file: file, from: number(2), column: number(3), to: number(4), statements: number(6)})
		}
		blocks[i].count += number(7)
	}
	return blocks, lines.Err()
}

// counted tells whose coverage counts: not that of test suites, nor of programs that show something.
func counted(dir string) bool { return !isTestPackage(dir) && !strings.HasPrefix(dir, "examples/") }

// share is how much of a package tests run.
type share struct {
	dir      string
	run, all int
}

func (s share) percent() float64 {
	if s.all == 0 {
		return 100
	}
	return 100 * float64(s.run) / float64(s.all)
}

func shares(blocks []block) []share {
	byDir := map[string]share{}
	for _, b := range blocks {
		s := byDir[b.dir()]
		s.dir, s.all = b.dir(), s.all+b.statements
		if b.count > 0 {
			s.run += b.statements
		}
		byDir[b.dir()] = s
	}
	var list []share
	for _, s := range byDir {
		if counted(s.dir) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b share) int { return strings.Compare(a.dir, b.dir) })
	return list
}

// exception is a line of uncovered.txt.
type exception struct {
	n               int // of the line
	place           string
	snippet         string // in the first line of the block; empty: all of the function's
	reason, problem string
}

var exceptionLine = regexp.MustCompile("^(\\S+\\.go:\\S+)(?: `([^`]+)`)? (.{10,})$")

func parseExceptions(text string) (list []exception) {
	for i, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) == "" || strings.HasPrefix(l, "#") {
			continue
		}
		m := exceptionLine.FindStringSubmatch(l)
		if m == nil {
			list = append(list, exception{n: i + 1, problem: "want FILE:FUNCTION `TEXT` REASON, with a reason that says something"})
			continue
		}
		list = append(list, exception{n: i + 1, place: m[1], snippet: m[2], reason: m[3]})
	}
	return list
}

func (e exception) covers(b block) bool {
	return e.problem == "" && b.file+":"+b.fn == e.place && strings.Contains(b.line, e.snippet)
}

// uncovered: what tests must run, they run, and each exception is still one.
func uncovered(blocks []block, exceptions []exception) (broken []string) {
	used := map[int]bool{}
	for _, b := range blocks {
		if b.count > 0 || b.statements == 0 || !slices.Contains(whole, b.dir()) {
			continue
		}
		excused := false
		for _, e := range exceptions {
			if e.covers(b) {
				excused, used[e.n] = true, true
			}
		}
		if !excused {
			broken = append(broken, fmt.Sprintf("%s:%d: no test runs this in %s: %s", b.file, b.from, b.fn, b.line))
		}
	}
	for _, e := range exceptions {
		switch {
		case e.problem != "":
			broken = append(broken, fmt.Sprintf("uncovered.txt:%d: %s", e.n, e.problem))
		case !used[e.n]:
			broken = append(broken, fmt.Sprintf("uncovered.txt:%d: tests run all of %s, or it is gone: remove the line", e.n, e.place))
		}
	}
	for _, s := range shares(blocks) {
		if !slices.Contains(whole, s.dir) && elsewhere[s.dir] == "" && s.percent() < leastCovered {
			broken = append(broken, fmt.Sprintf("%s: tests run %.1f %% of its statements, and %d are wanted", s.dir, s.percent(), leastCovered))
		}
	}
	return broken
}

// where finds the function around a block, as Type.Name, and the block's first line.
func where(t *testing.T, b block) (fn, line string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.file)))
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	first := lines[b.from-1]
	// A block that begins with a brace is told by what stands before it, and one that follows by its own first line.
	if b.column > len(first) && b.from < len(lines) {
		first = lines[b.from]
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, b.file, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	return functionAt(fset, file, b.from), strings.TrimSpace(first)
}

func functionAt(fset *token.FileSet, file *ast.File, line int) string {
	for _, decl := range file.Decls {
		if fset.Position(decl.Pos()).Line > line || fset.Position(decl.End()).Line < line {
			continue
		}
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			return "var"
		}
		return receiver(fn) + fn.Name.Name
	}
	return "?"
}

// receiver is the type of a method and a dot.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name + "."
		default:
			return ""
		}
	}
}

// TestCoverageRule shows what breaks it.
func TestCoverageRule(t *testing.T) {
	run := func(file string, n, count int) block {
		return block{file: file, from: 3, statements: n, count: count, fn: "F", line: "if err != nil {"}
	}
	text := "# why\n\nperm/a.go:F `err != nil` the disk never fails here\n"
	for _, tt := range []struct {
		name       string
		blocks     []block
		exceptions string
		want       []string
	}{
		{"all run", []block{run("perm/a.go", 5, 1)}, "", nil},
		{"not run", []block{run("perm/a.go", 5, 1), run("perm/a.go", 1, 0)}, "", []string{"perm/a.go:3: no test runs this in F"}},
		{"excused", []block{run("perm/a.go", 1, 0)}, text, nil},
		{"another text", []block{run("perm/a.go", 1, 0)}, "perm/a.go:F `err == nil` the disk never fails\n", []string{"no test runs", "remove the line"}},
		{"another function", []block{run("perm/a.go", 1, 0)}, "perm/a.go:G the disk never fails\n", []string{"no test runs", "remove the line"}},
		{"excused, and run", []block{run("perm/a.go", 1, 1)}, text, []string{"uncovered.txt:3: tests run all of perm/a.go:F, or it is gone"}},
		{"no reason", []block{run("perm/a.go", 1, 1)}, "perm/a.go:F rare\n", []string{"uncovered.txt:1: want FILE:FUNCTION"}},
		{"a child is not its parent", []block{run("revert/sqlite/a.go", 9, 1), run("revert/sqlite/a.go", 1, 0)}, "", nil},
		{"too little", []block{run("tool/a.go", 89, 1), run("tool/b.go", 11, 0)}, "", []string{"tool: tests run 89.0 % of its statements, and 90 are wanted"}},
		{"just enough", []block{run("tool/a.go", 90, 1), run("tool/b.go", 10, 0)}, "", nil},
		{"test suites", []block{run("revert/journaltest/a.go", 9, 0), run("examples/first/main.go", 9, 0)}, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := uncovered(tt.blocks, parseExceptions(tt.exceptions))
			require.Len(t, got, len(tt.want), "%q", got)
			for i, want := range tt.want {
				require.Contains(t, got[i], want)
			}
		})
	}
}

func TestParseProfile(t *testing.T) {
	blocks, err := parseProfile("mode: set\n" +
		module + "/perm/a.go:3.17,5.2 4 0\n" + module + "/perm/a.go:7.1,8.2 1 0\n" + module + "/perm/a.go:3.17,5.2 4 1\n")
	require.NoError(t, err)
	require.Equal(t, []block{
		{file: "perm/a.go", from: 3, column: 17, to: 5, statements: 4, count: 1},
		{file: "perm/a.go", from: 7, column: 1, to: 8, statements: 1},
	}, blocks)
	_, err = parseProfile("mode: set\nnonsense\n")
	require.ErrorContains(t, err, "line 2")
}

func TestFunctionAt(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", "package x\ntype a[T any] struct{}\nfunc (p *a[T]) m() {\n}\nfunc f() {}\nvar v = 1\nfunc (p a[T]) n() {}\n", 0)
	require.NoError(t, err)
	for line, want := range map[int]string{3: "a.m", 4: "a.m", 5: "f", 6: "var", 7: "a.n", 99: "?"} {
		require.Equal(t, want, functionAt(fset, file, line))
	}
}
