package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func importing(dir string, imports ...string) pkg { return pkg{dir: dir, imports: imports} }

// TestPackageRules shows of every rule about packages what breaks it and what does not.
func TestPackageRules(t *testing.T) {
	const (
		opa    = "github.com/open-policy-agent/opa/v1/rego"
		sqlite = "modernc.org/sqlite"
	)
	for _, tt := range []struct {
		name string
		rule func(pkg) []string
		pkg  pkg
		want string // empty: not broken
	}{
		{"down", arrows, importing("agent", module+"/tool", "fmt"), ""},
		{"up", arrows, importing("tool", module+"/agent"), "tool imports agent, which stands above it"},
		{"child imports parent", arrows, importing("tool/wire", module+"/tool"), ""},
		{"parent imports child", arrows, importing("tool", module+"/tool/wire"), "tool imports tool/wire, which stands above it"},
		{"sibling", arrows, importing("ctxperm/web", module+"/ctxperm/files"), "which stands beside it"},
		{"listed sibling", arrows, importing("internal/schema", module+"/internal/canon"), ""},
		{"listed sibling, reversed", arrows, importing("internal/canon", module+"/internal/schema"), "which stands beside it"},
		{"child imports parent in one row", arrows, importing("internal/disk/disktest", module+"/internal/disk"), ""},
		{"parent imports child in one row", arrows, importing("internal/disk", module+"/internal/disk/raw"), "which stands beside it"},
		{"perm on revert", arrows, importing("perm", module+"/revert"), ""},
		{"revert on perm", arrows, importing("revert", module+"/perm"), "revert imports perm, which stands above it"},
		{"verify on ctxperm", arrows, importing("verify", module+"/ctxperm"), "verify imports ctxperm, which stands above it"},
		{"leaf on anything", arrows, importing("internal/canon", module+"/perm"), "internal/canon imports perm"},
		{"own internals", arrows, importing("agent", module+"/agent/internal/plan"), ""},
		{"own internals, reversed", arrows, importing("agent/internal/plan", module+"/agent"), "which stands above it"},
		{"internals of one owner", arrows, importing("mcp/gateway/config", module+"/mcp/gateway/internal/binding"), ""},
		{"internals of one owner, reversed", arrows, importing("mcp/gateway/internal/binding", module+"/mcp/gateway/config"), "which stands above it"},
		{"own internals, down", arrows, importing("agent/internal/plan", module+"/tool"), ""},
		{"verbs on what they share", arrows, importing("cmd/remit/internal/script", module+"/cmd/remit/internal/startup", module+"/agent"), ""},
		{"a family of verbs on another", arrows, importing("cmd/remit/internal/approve", module+"/cmd/remit/internal/script"), "which stands beside it"},
		{"the frame of the verbs on a verb", arrows, importing("cmd/remit/internal/cli", module+"/cmd/remit/internal/script"), "which stands above it"},
		{"the frame of the verbs on their state", arrows, importing("cmd/remit/internal/cli", module+"/cmd/remit/internal/state"), "which stands above it"},
		{"nobody imports a command", arrows, importing("agent", module+"/cmd/remit"), "which stands above it"},
		{"test helper", arrows, importing("agent", module+"/revert/journaltest"), "which is for tests"},
		{"no layer", arrows, importing("misc"), "misc has no layer"},

		{"engine for agent", owned, importing("agent", module+"/perm/rego"), ""},
		{"engine for console", owned, importing("console", module+"/perm/rego"), "console imports perm/rego"},
		{"engine for a test", owned, pkg{dir: "console", testImports: []string{module + "/perm/rego"}}, ""},
		{"OPA", owned, importing("perm/rego", opa), ""},
		{"OPA elsewhere", owned, importing("agent", opa), "agent imports " + opa},
		{"OPA in a test", owned, pkg{dir: "agent", testImports: []string{opa}}, "a test of agent imports " + opa},
		{"OPA in a test of a command", owned, pkg{dir: "cmd/remit", testImports: []string{opa}}, ""},
		{"SQLite", owned, importing("revert/sqlite", sqlite, sqlite+"/vfs"), ""},
		{"SQLite elsewhere", owned, importing("revert", sqlite+"/vfs"), "revert imports " + sqlite + "/vfs"},
		{"durable journal", owned, importing("agent", module+"/revert/sqlite"), "agent imports revert/sqlite"},
		{"HTTP", owned, importing("tool", "net/http"), "tool imports net/http"},
		{"HTTP for web", owned, importing("ctxperm/web", "net/http/httptrace"), ""},
		{"HTTP in a test", owned, pkg{dir: "tool", testImports: []string{"net/http/httptest"}}, ""},
		{"cobra", owned, importing("agent", "github.com/spf13/cobra"), "agent imports github.com/spf13/cobra"},
		{"testify", owned, importing("tool", "github.com/stretchr/testify/require"), "tool imports github.com/stretchr/testify"},
		{"testify in a test helper", owned, importing("tool/tooltest", "github.com/stretchr/testify/require"), ""},
		{"mo", owned, importing("tool", "github.com/samber/mo"), ""},
		{"mo/result", owned, importing("tool", "github.com/samber/mo/result"), "tool imports github.com/samber/mo/result"},
		{"mo/either in a test", owned, pkg{dir: "tool", testImports: []string{"github.com/samber/mo/either"}}, "mo/either"},

		{"tool links OPA", linked, pkg{dir: "tool", deps: []string{"fmt", opa}}, "tool links " + opa},
		{"tool links HTTP", linked, pkg{dir: "tool", deps: []string{"net/http"}}, "tool links net/http"},
		{"files link SQLite", linked, pkg{dir: "tool/builtin/internal/files", deps: []string{sqlite}}, "tool/builtin/internal/files links " + sqlite},
		{"ctxperm links testing", linked, pkg{dir: "ctxperm", deps: []string{"testing"}}, "ctxperm links testing"},
		{"agent may", linked, pkg{dir: "agent", deps: []string{opa, "net/http"}}, ""},
		{"revert links perm", linked, pkg{dir: "revert", deps: []string{module + "/perm"}}, "revert links perm"},
		{"revert links a tool", linked, pkg{dir: "revert", deps: []string{module + "/tool/wire"}}, "revert links tool/wire"},
		{"checker links the disk", linked, pkg{dir: "internal/proof/treecheck", deps: []string{module + "/internal/disk"}}, "internal/proof/treecheck links internal/disk"},
		{"checker imports the disk", arrows, importing("internal/proof/treecheck", module+"/internal/disk"), "which stands beside it"},
		{"checker links the system", linked, pkg{dir: "internal/proof/treecheck", deps: []string{"os", "golang.org/x/sys/unix", module + "/internal/proof/treecheck"}}, ""},
		{"revert links canon", linked, pkg{dir: "revert", deps: []string{module + "/internal/canon"}}, ""},

		{"folder name", named, pkg{dir: "internal/util", name: "util"}, `"util" says nothing`},
		{"parent folder name", named, pkg{dir: "pkg/canon", name: "canon"}, `"pkg" says nothing`},
		{"package name", named, pkg{dir: "tool/kinds", name: "types"}, `"types" says nothing`},
		{"good name", named, pkg{dir: "internal/canon", name: "canon"}, ""},

		{"no doc", documented, pkg{dir: "internal/canon", name: "canon"}, "internal/canon has no package comment"},
		{"internal", documented, pkg{dir: "internal/canon", name: "canon", doc: "Package canon."}, ""},
		{"no example", documented, pkg{dir: "tool", name: "tool", doc: "Package tool."}, "tool has no Example function"},
		{"example", documented, pkg{dir: "tool", name: "tool", doc: "Package tool.", examples: []string{"Example"}}, ""},
		{"command", documented, pkg{dir: "cmd/remit", name: "main", doc: "Remit."}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Contains(t, strings.Join(tt.rule(tt.pkg), "\n")+"\n", tt.want)
			require.Equal(t, tt.want != "", len(tt.rule(tt.pkg)) > 0, "%q", tt.rule(tt.pkg))
		})
	}
}

// TestCodeRules does the same for the rules about Go code.
func TestCodeRules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rule  func(*token.FileSet, *ast.File) []string
		lines string
		want  string
	}{
		{"init", inits, "func init() {}", "x.go:2:1: func init"},
		{"method named init", inits, "type a int\nfunc (a) init() {}", ""},
		{"field", locks, "import \"sync\"\ntype a struct {\n\tmu sync.Mutex\n}", "x.go:4:5: sync.Mutex without the comment"},
		{"pointer", locks, "import \"sync\"\nfunc f(*sync.RWMutex) {}", "x.go:3:9: sync.RWMutex without the comment"},
		{"renamed", locks, "import s \"sync\"\nvar mu s.Mutex", "x.go:3:8: sync.Mutex without the comment"},
		{"pledged", locks, "import \"sync\"\nvar mu sync.Mutex // never held across a wait: only copies a map", ""},
		{"pledged elsewhere", locks, "import \"sync\"\n// never held across a wait\n\nvar mu sync.Mutex", "x.go:5:8"},
		{"clock", seams, "import \"time\"\nvar now = time.Now()", "x.go:3:11: time.Now; the host gives it"},
		{"timer", seams, "import \"context\"\nvar f = context.WithTimeout", "x.go:3:9: context.WithTimeout"},
		{"randomness", seams, "import \"math/rand/v2\"\nvar n = rand.IntN(2)", "x.go:3:9: rand.IntN"},
		{"a duration", seams, "import \"time\"\nvar d = time.Second", ""},
		{"another time", seams, "import \"example.com/time\"\nvar now = time.Now()", ""},
		{"another sync", locks, "import \"example.com/other/sync\"\nvar mu sync.Mutex", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "x.go", "package x\n"+tt.lines, parser.ParseComments)
			require.NoError(t, err)
			got := tt.rule(fset, file)
			require.Contains(t, strings.Join(got, "\n"), tt.want)
			require.Equal(t, tt.want != "", len(got) > 0, "%q", got)
		})
	}
}

// TestTextRules does the same for the rules about text. The samples are put together here, or they would break the rule.
func TestTextRules(t *testing.T) {
	require.Empty(t, long("x.go", strings.Repeat("\n", maxLines)))
	require.Equal(t, []string{"x.go has 601 lines, more than 600"}, long("x.go", strings.Repeat("\n", maxLines+1)))

	for _, bad := range []string{
		"see /" + "work/notes", "/" + "root/.config", "`/" + "root/x`", "proxy." + "golang.org", "registry." + "npmjs.org",
		"https://pypi" + ".org/simple", "ghcr" + ".io/a/b", "index.crates" + ".io",
	} {
		require.Len(t, words("x.md", "first\n"+bad), 1, bad)
		require.Contains(t, words("x.md", "first\n"+bad)[0], "x.md:2: ", bad)
	}
	for _, good := range []string{"network/root/x", "file://root/a", "./work/x", "a/work/b", "pkg.go.dev", "docs.example.org"} {
		require.Empty(t, words("x.md", good), good)
	}
}

func TestScopeOfLocks(t *testing.T) {
	for _, dir := range []string{"agent", "agent/internal/plan", "tool", "tool/builtin/internal/files", "ctxperm/files", "revert", "internal/callstate"} {
		require.True(t, mustBeFreeOfLocks(dir), dir)
	}
	for _, dir := range []string{"revert/sqlite", "revert/journaltest", "perm/rego", "cmd/remit", "toolbox"} {
		require.False(t, mustBeFreeOfLocks(dir), dir)
	}
}

func TestExamplesIn(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\nfunc Example() {}\nfunc ExampleF() {}\nfunc other() {}", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"Example", "ExampleF"}, examplesIn(file))
}
