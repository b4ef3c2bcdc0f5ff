package arch_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const module = "github.com/remit-dev/remit"

// layers lists the folders from top to bottom. An import may only point down, so a child ("x/..." is everything below x)
// stands above its parent: it may import it, and never the reverse. Folders of one row do not import each other.
// A folder p/internal/... needs no row: it stands right below p, which owns it. It has one if p has several that import each
// other.
var layers = [][]string{
	{"examples/..."},
	{"cmd/..."},
	{ // the families of verbs: none imports another
		"cmd/remit/internal/approve", "cmd/remit/internal/completion", "cmd/remit/internal/console", "cmd/remit/internal/doctor", "cmd/remit/internal/execute", "cmd/remit/internal/gateway", "cmd/remit/internal/hook", "cmd/remit/internal/journal",
		"cmd/remit/internal/policy", "cmd/remit/internal/script", "cmd/remit/internal/secret", "cmd/remit/internal/serve", "cmd/remit/internal/tools", "cmd/remit/internal/watch",
	},
	{"cmd/remit/internal/startup"},
	{"cmd/remit/internal/approval", "cmd/remit/internal/policyfile", "cmd/remit/internal/upstream"},
	{"cmd/remit/internal/agentguard"},
	{"cmd/remit/internal/state"},
	{"cmd/remit/internal/render", "cmd/remit/internal/review", "cmd/remit/internal/stats"},
	{"cmd/remit/internal/cli"},
	{"internal/proof/databasetest", "internal/proof/frameworktest", "revert/reverttest"}, // try what stands below agent through agent
	{"internal/connect", "internal/login"},                                               // of the command: files of MCP clients, and tokens for servers of the gateway
	{"console/...", "mcp/..."},
	{"mcp/gateway/internal/mirror"},
	{"mcp/gateway/internal/undo"},
	{"mcp/gateway/internal/upstream"},
	{"mcp/gateway/internal/clientrequest", "mcp/gateway/internal/pin"},
	{"mcp/gateway/internal/definition", "mcp/gateway/internal/program", "mcp/gateway/internal/wire"},
	{"mcp/gateway/config"},
	{"mcp/gateway/internal/binding", "mcp/gateway/internal/naming"},
	{"console", "hooks", "mcp"},
	{"agent/..."},
	{"agent"},
	{"internal/callview"}, // what people see of recorded calls
	{"internal/pipeline"},
	{"tool/..."},
	{"tool"},
	{"internal/toolaccess"},
	{"ctxperm/..."},
	{"ctxperm"},
	{"internal/grant", "internal/handleaccess"},
	{"internal/callstate"},
	{"internal/toolstate"},
	{"verify"},
	{"perm/rego/..."},
	{"perm/rego"},
	{"internal/pastcall"},
	{"perm"},
	{"internal/proof/simjournal", "revert/..."},
	{"revert"},
	{"revert/journal"},
	{"revert/record"},
	{"revert/effect"},
	{"policies"},
	{"history", "provenance"},
	{"internal/..."},
}

// siblings are the imports inside one row that are meant: importer, then imported.
var siblings = [][2]string{
	{"ctxperm/process", "ctxperm/files"}, // what a program changes are files
	{"internal/canon", "internal/sparse"},
	{"internal/disk", "internal/sparse"},
	{"internal/host", "internal/disk"},
	{"internal/host", "internal/lineage"},
	{"internal/host/hosttest", "internal/disk"},
	{"internal/sandbox", "internal/shim"},
	{"internal/hookclient/first", "internal/hookclient"},
	{"internal/hookclient/netclient", "internal/hookclient"},
	{"internal/sandbox/first", "internal/shim"},
	{"internal/version/first", "internal/version"},
	{"internal/origin", "internal/canon"},
	{"internal/origin", "internal/urlscan"},
	{"internal/schema", "internal/canon"},
	{"internal/schema", "internal/pointer"},
	{"internal/schema", "internal/suggest"},
	{"internal/jsonfile", "internal/canon"},
	{"internal/jsonfile", "internal/suggest"},
	{"internal/proof/agentclients", "internal/proof/fakemodel"},  // which plays the model
	{"internal/proof/randprog/actor", "internal/proof/randprog"}, // the same programs, as a process
	{"mcp/conformance", "mcp/gateway"},                           // which it holds to the protocol's suite
	{"ctxperm/process", "ctxperm/web"},                           // hosts of programs
	{"ctxperm/web", "ctxperm/secrets"},                           // credentials; where their values are kept is below it, and not linked
}

// owner says who may import a package, in code and, besides those, in tests.
type owner struct {
	pkg       string // an import path, or a folder of this module; "x/..." is x and everything below it
	by, tests []string
}

var owners = []owner{
	{pkg: "perm/rego", by: []string{"agent", "agent/learn", "agent/replay", "perm/rego/...", "cmd/...", "examples/...", "internal/proof/frameworktest"}, tests: []string{"..."}},
	{pkg: "revert/sqlite", by: []string{"cmd/...", "examples/...", "mcp/conformance"}, tests: []string{"..."}},
	{pkg: "revert/postgres", by: []string{"cmd/...", "examples/..."}, tests: []string{"..."}},
	{pkg: "github.com/open-policy-agent/opa/...", by: []string{"perm/rego", "perm/rego/internal/..."}, tests: []string{"cmd/..."}},
	{pkg: "modernc.org/sqlite/...", by: []string{"revert/sqlite", "ctxperm/database/sqlite", "examples/..."}, tests: []string{"ctxperm/database/...", "tool/builtin/internal/database", "cmd/..."}},
	{pkg: "github.com/jackc/pgx/...", by: []string{"ctxperm/database/postgres", "revert/postgres", "internal/proof/pgtest"}, tests: []string{"ctxperm/database/...", "tool/builtin/internal/database", "cmd/..."}},
	{pkg: "net/http/...", by: []string{"ctxperm/web", "internal/egress", "tool/builtin/internal/web", "console", "mcp", "mcp/...", "internal/login", "internal/proof/logintest", "internal/proof/fakemodel", "internal/proof/agentclients", "examples/..."}, tests: []string{"..."}},
	{pkg: "go.opentelemetry.io/otel/...", by: []string{"tool/filter/otel", "mcp/..."}},
	{pkg: "filippo.io/age/...", by: []string{"ctxperm/secrets/vault"}},
	{pkg: "github.com/zalando/go-keyring/...", by: []string{"ctxperm/secrets/keyring"}, tests: []string{"cmd/..."}},
	{pkg: "github.com/fsnotify/fsnotify/...", by: []string{"tool/define"}},
	{pkg: "github.com/tailscale/hujson/...", by: []string{"mcp/...", "internal/connect"}}, // files of other programs alone; ours are strict JSON
	{pkg: "github.com/pelletier/go-toml/v2/...", by: []string{"internal/connect"}},
	{pkg: "github.com/modelcontextprotocol/go-sdk/...", by: []string{"mcp", "mcp/...", "internal/login"}, tests: []string{"cmd/...", "examples/guides"}},
	{pkg: "github.com/spf13/cobra/...", by: []string{"cmd/..."}},
	{pkg: "charm.land/bubbletea/v2/...", by: []string{"cmd/remit/internal/watch"}},
	{pkg: "github.com/charmbracelet/x/...", by: []string{"cmd/remit/internal/watch"}},
	{pkg: "github.com/stretchr/testify/...", by: []string{"*test", "internal/proof/agentclients"}, tests: []string{"..."}},
	// Both import testing and testify, and with it net/http, in code that is not a test.
	{pkg: "github.com/samber/mo/result"},
	{pkg: "github.com/samber/mo/either"},
}

// reach lists the packages that the packages in from must not link, directly or
// indirectly.
type reach struct{ from, never []string }

var reaches = []reach{
	{
		from: []string{
			"tool", "tool/wire", "tool/settings", "tool/define", "ctxperm", "ctxperm/files", "tool/builtin/internal/files", "ctxperm/database", "tool/builtin/internal/database",
		},
		never: []string{"github.com/open-policy-agent/opa/...", "modernc.org/sqlite/...", "github.com/jackc/pgx/...", "net/http", "testing"},
	},
	// Packages are initialised in the order of their import paths, each once all that it imports is. What a shim
	// imports is what it waits for: after one of these some ninety packages of the remit command come before it,
	// which takes a fifth of what a sandbox takes to start.
	{
		from: []string{"internal/shim", "internal/sandbox/first", "internal/hookclient", "internal/hookclient/first"},
		never: []string{
			"reflect", "unicode", "time", "os", "io/fs", "fmt", "strings", "bytes", "bufio", "encoding", "encoding/...", "context", "net", "net/...",
			"os/...", "path", "path/...", "sort", "golang.org/...", "github.com/...",
		},
	},
	{
		from:  []string{"internal/version/first"},
		never: []string{"context", "net", "net/...", "encoding/...", "regexp", "golang.org/...", "modernc.org/..."},
	},
	{
		from:  []string{"ctxperm/secrets", "ctxperm/secrets/keyring", "ctxperm/secrets/vault"},
		never: []string{"github.com/open-policy-agent/opa/...", "modernc.org/sqlite/...", "net/http", "testing"},
	},
	{
		from:  []string{"ctxperm/secrets", "ctxperm/web", "tool/builtin/internal/web"},
		never: []string{"github.com/open-policy-agent/opa/...", "modernc.org/sqlite/...", "testing", "filippo.io/age", "github.com/zalando/go-keyring"},
	},
	{from: []string{"internal/connect"}, never: []string{"github.com/open-policy-agent/opa/...", "modernc.org/sqlite/...", "net/http", "testing", "github.com/modelcontextprotocol/go-sdk/..."}},
	// The checker judges what all these do, and so uses none of them.
	{
		from: []string{"internal/proof/treecheck"},
		never: []string{
			"github.com/...", "modernc.org/...", "agent/...", "tool/...", "ctxperm/...", "revert/...", "verify/...", "perm/...",
			"internal/disk/...", "internal/sparse/...", "internal/urlscan/...",
		},
	},
	{from: []string{"revert"}, never: []string{"perm/...", "tool/...", "verify/...", "ctxperm/..."}},
}

// pkg is what the rules need to know of a package. dir is relative to the root of the module.
type pkg struct {
	dir, name, doc string
	imports        []string
	testImports    []string
	deps           []string // everything linked with it
	examples       []string
}

// within reports whether p is matched by the pattern: equal to it, below x for "x/...", or ending in test for "*test".
func within(pattern, p string) bool {
	if pattern == "..." {
		return true
	}
	if pattern == "*test" {
		return isTestPackage(p)
	}
	if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(p, parent+"/")
	}
	return pattern == p
}

// withinOrAt is within, where "x/..." holds x as well.
func withinOrAt(pattern, p string) bool {
	return within(pattern, p) || pattern == p+"/..."
}

func anyWithin(patterns []string, p string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return within(pattern, p) })
}

// isTestPackage reports whether a folder holds helpers for tests, such as tool/tooltest.
func isTestPackage(dir string) bool { return strings.HasSuffix(path.Base(dir), "test") }

// rank orders folders: the smaller stands higher. ok is false for a folder without a layer.
func rank(dir string) (r int, ok bool) {
	if i := strings.LastIndex(dir, "/internal/"); i > 0 && !listed(dir) {
		r, ok = rank(dir[:i])
		return r + 1, ok
	}
	best := ""
	for i, row := range layers {
		for _, pattern := range row {
			if within(pattern, dir) && len(pattern) > len(best) {
				best, r = pattern, i*10
			}
		}
	}
	return r, best != ""
}

// listed reports whether a row names the folder itself.
func listed(dir string) bool {
	return slices.ContainsFunc(layers, func(row []string) bool { return slices.Contains(row, dir) })
}

// arrows: every folder has a layer, and its imports point down.
func arrows(p pkg) (broken []string) {
	from, ok := rank(p.dir)
	if !ok {
		return []string{p.dir + " has no layer: give it one in layers"}
	}
	for _, imported := range p.imports {
		to, local := folder(imported)
		if !local {
			continue
		}
		down, ok := rank(to)
		switch {
		case !ok: // said where that folder itself is looked at
		case isTestPackage(to) && !isTestPackage(p.dir):
			broken = append(broken, fmt.Sprintf("%s imports %s, which is for tests", p.dir, to))
		case down < from:
			broken = append(broken, fmt.Sprintf("%s imports %s, which stands above it", p.dir, to))
		case down > from || strings.HasPrefix(p.dir, to+"/"): // below it, or its parent in the same row
		case !slices.Contains(siblings, [2]string{p.dir, to}):
			broken = append(broken, fmt.Sprintf("%s imports %s, which stands beside it", p.dir, to))
		}
	}
	return broken
}

// owned reports imports of a package that has owners by a package that is not
// one of them.
func owned(p pkg) (broken []string) {
	for _, o := range owners {
		for _, to := range p.imports {
			if withinOrAt(o.pkg, short(to)) && !anyWithin(o.by, p.dir) {
				broken = append(broken, fmt.Sprintf("%s imports %s, which is for %v alone", p.dir, short(to), o.by))
			}
		}
		for _, to := range p.testImports {
			if withinOrAt(o.pkg, short(to)) && !anyWithin(o.by, p.dir) && !anyWithin(o.tests, p.dir) {
				broken = append(broken, fmt.Sprintf("a test of %s imports %s, which is for %v alone", p.dir, short(to), o.by))
			}
		}
	}
	return broken
}

// linked: some packages keep others out of every program that uses them.
func linked(p pkg) (broken []string) {
	for _, r := range reaches {
		if !slices.Contains(r.from, p.dir) {
			continue
		}
		for _, to := range p.deps {
			if slices.ContainsFunc(r.never, func(never string) bool { return withinOrAt(never, short(to)) }) {
				broken = append(broken, fmt.Sprintf("%s links %s", p.dir, short(to)))
			}
		}
	}
	return broken
}

// named: no folder or package has a name that says nothing.
func named(p pkg) (broken []string) {
	for _, name := range append(strings.Split(p.dir, "/"), p.name) {
		switch name {
		case "pkg", "util", "utils", "common", "types", "models", "helpers":
			broken = append(broken, fmt.Sprintf("%s: %q says nothing about what is inside", p.dir, name))
		}
	}
	return broken
}

// documented: every package has a doc comment, and every public one an example.
func documented(p pkg) (broken []string) {
	if p.doc == "" {
		broken = append(broken, p.dir+" has no package comment")
	}
	if isPublic(p) && len(p.examples) == 0 {
		broken = append(broken, p.dir+" has no Example function")
	}
	return broken
}

func isPublic(p pkg) bool {
	return p.name != "main" && !slices.Contains(strings.Split(p.dir, "/"), "internal") && !within("examples/...", p.dir)
}

// folder is the folder of an import path of this module.
func folder(importPath string) (dir string, ok bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// short is an import path as owners and reaches write it.
func short(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }
