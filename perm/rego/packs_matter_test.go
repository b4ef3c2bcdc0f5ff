package rego_test

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
)

// wholePacks returns every pack, each with the packs that it needs to decide.
func wholePacks() map[string][]fs.FS {
	nothing := fstest.MapFS{"nothing.rego": {Data: []byte("package remit\n\nallow contains \"x\" if false\n")}}
	all := map[string][]fs.FS{"lib": {policies.Lib(), nothing}}
	for _, name := range policies.Names() {
		pack, _ := policies.Pack(name)
		all[name] = []fs.FS{pack}
	}
	return all
}

// TestRulesMatter removes one rule at a time, and checks that the tests of the
// pack fail.
func TestRulesMatter(t *testing.T) {
	for name, pack := range wholePacks() {
		t.Run(name, func(t *testing.T) {
			texts := map[string]string{}
			for _, fsys := range pack {
				require.NoError(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return err
					}
					text, err := fs.ReadFile(fsys, name)
					texts[name] = string(text)
					return err
				}))
			}
			plain := newPlainTests(t, texts)
			require.False(t, plain.fail(t, "", ""), "with all rules")
			removed, noticed := 0, 0
			for file, text := range texts {
				if !strings.HasPrefix(file, name+"/") || strings.HasSuffix(file, "_test.rego") {
					continue
				}
				rules := strings.Split(text, "\n\n")
				for i, rule := range rules {
					if !strings.Contains(rule, " contains ") && !strings.Contains(rule, " if ") {
						continue
					}
					removed++
					kept := append(slices.Clone(rules[:i]), rules[i+1:]...)
					without := maps.Clone(texts)
					without[file] = strings.Join(kept, "\n\n")
					if plain.fail(t, file, without[file]) || missesRule(t, without) {
						noticed++
						continue
					}
					t.Errorf("nobody misses:\n%s", rule)
				}
			}
			t.Logf("%d rules, all missed: %v", removed, noticed == removed)
			require.Greater(t, removed, 2)
		})
	}
}

// plainTests are modules whose tests OPA runs without the checks, the coverage
// and the traces of an engine, which compiles the modules three times.
type plainTests map[string]*ast.Module

func newPlainTests(t *testing.T, texts map[string]string) plainTests {
	t.Helper()
	lib, err := fs.ReadFile(policies.Lib(), "lib/lib.rego")
	require.NoError(t, err)
	texts = maps.Clone(texts)
	texts["lib/lib.rego"] = string(lib)
	all := plainTests{}
	for file, text := range texts {
		all[file], err = parse(file, text)
		require.NoError(t, err)
	}
	return all
}

func parse(file, text string) (*ast.Module, error) {
	return ast.ParseModuleWithOpts(file, text, ast.ParserOptions{RegoVersion: ast.RegoV1})
}

// fail reports whether the modules, one of them with another text ("": none), do
// not parse or compile, or fail a test.
func (p plainTests) fail(t *testing.T, file, text string) bool {
	t.Helper()
	all := map[string]*ast.Module{}
	for name, mod := range p {
		all[name] = mod.Copy()
	}
	if file != "" {
		mod, err := parse(file, text)
		if err != nil {
			return true
		}
		all[file] = mod
	}
	c := ast.NewCompiler().WithDefaultRegoVersion(ast.RegoV1).WithEnablePrintStatements(true).WithCapabilities(rego.Capabilities())
	results, err := tester.NewRunner().SetCompiler(c).SetModules(all).SetStore(inmem.New()).
		CapturePrintOutput(true).SetTimeout(time.Minute).AddCustomBuiltins(rego.PastBuiltins()).RunTests(t.Context(), nil)
	if err != nil {
		return true
	}
	passed, failed := 0, false
	for r := range results {
		failed = failed || !r.Pass()
		passed++
	}
	require.GreaterOrEqual(t, passed, 4, "tests")
	return failed
}

// missesRule reports whether a policy without a rule fails its tests, or does not
// load because another rule needs it.
func missesRule(t *testing.T, texts map[string]string) bool {
	t.Helper()
	e, err := rego.New(rego.Options{Modules: texts})
	if err != nil {
		return true
	}
	report, err := e.Test(context.Background())
	return err != nil || len(report.Failed()) > 0
}
