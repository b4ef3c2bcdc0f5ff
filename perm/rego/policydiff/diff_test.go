package policydiff_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/perm/rego/policydiff"
	"github.com/remit-dev/remit/policies"
)

func must(t *testing.T, rules string) *rego.Engine {
	e, err := engine("package remit\n\nimport data.remit.lib\n\nuses_lib if lib.role(\"a\")\n\n"+rules, map[string][]string{"t": {"a", "b"}})
	require.NoError(t, err)
	return e
}

// TestForms compares pairs that differ in one condition of each form that the
// search follows.
func TestForms(t *testing.T) {
	for _, tt := range []struct{ name, old, changed string }{
		{"number", `allow contains "x" if input.call.args.n < 10`, `allow contains "x" if input.call.args.n <= 10`},
		{"turned", `allow contains "x" if 10 > input.call.args.n`, `allow contains "x" if 10 >= input.call.args.n`},
		{"not equal", `allow contains "x" if input.call.args.mode != "a"`, `allow contains "x" if input.call.args.mode != "b"`},
		{"regex", `allow contains "x" if regex.match("^rm( -rf?)+$", input.call.args.script)`, `allow contains "x" if regex.match("^rm( -r)+$", input.call.args.script)`},
		{"regex class", `allow contains "x" if regex.match("^[a-c]{2,3}.?[0-9]*$", input.call.args.script)`, `allow contains "x" if regex.match("^[a-c]{2}.?[0-9]*$", input.call.args.script)`},
		{"glob", `allow contains "x" if glob.match("src/{a,b}/**/?[cd].go", ["/"], input.access.resource.path)`, `allow contains "x" if glob.match("src/{a,b}/*/?[cd].go", ["/"], input.access.resource.path)`},
		{"contains", `allow contains "x" if contains(input.call.args.script, "sudo ")`, `allow contains "x" if contains(input.call.args.script, "sudo")`},
		{"prefixes", `allow contains "x" if strings.any_prefix_match(input.tool.name, {"a_", "b_"})`, `allow contains "x" if strings.any_prefix_match(input.tool.name, {"a_"})`},
		{"suffixes", `allow contains "x" if strings.any_suffix_match(input.tool.name, {"_a", "_b"})`, `allow contains "x" if strings.any_suffix_match(input.tool.name, {"_b"})`},
		{"every", `allow contains "x" if { count(input.principal.roles) > 0; every r in input.principal.roles { r == "a" } }`, `allow contains "x" if { count(input.principal.roles) > 0; every r in input.principal.roles { r in {"a", "b"} } }`},
		{"script", `deny contains "x" if { some c in input.call.script.commands; c.program == "rm"; "-rf" in c.args }
allow contains "y"`, `deny contains "x" if { some c in input.call.script.commands; c.program == "rm"; "-r" in c.args }
allow contains "y"`},
		{"changes", `ensure contains "x" if { some c in input.changes; c.resource.path == "a/b.txt" }
allow contains "y"`, `ensure contains "x" if { some c in input.changes; c.resource.path == "a/c.txt" }
allow contains "y"`},
		{"helper value", "kind := \"big\" if input.call.args.n > 5\nkind := \"small\" if input.call.args.n <= 3\nallow contains \"x\" if kind == \"big\"", "kind := \"big\" if input.call.args.n > 6\nkind := \"small\" if input.call.args.n <= 3\nallow contains \"x\" if kind == \"big\""},
		{"function", "over(n, m) := true if n > m\nallow contains \"x\" if over(input.call.args.n, 40)", "over(n, m) := true if n > m\nallow contains \"x\" if over(input.call.args.n, 50)"},
		{"set rule", "names contains \"a\"\nnames contains \"b\"\nallow contains \"x\" if input.tool.name in names", "names contains \"a\"\nallow contains \"x\" if input.tool.name in names"},
		{"data key", `allow contains "x" if input.tool.name in data.tables.t`, `allow contains "x" if input.tool.name == data.tables.t[0]`},
		{"local", "allow contains \"x\" if {\n\tp := lower(input.access.resource.path)\n\tstartswith(p, concat(\"/\", [\"src\", \"\"]))\n}", "allow contains \"x\" if {\n\tp := lower(input.access.resource.path)\n\tstartswith(p, concat(\"/\", [\"lib\", \"\"]))\n}"},
		{"same", `allow contains "x" if input.call.args.owner == input.principal.id`, `allow contains "x" if input.call.args.owner == input.session.id`},
		{"port", `allow contains "x" if { input.access.resource.host == "a.example"; input.access.resource.port == 8443 }`, `allow contains "x" if { input.access.resource.host == "a.example"; input.access.resource.port == 443 }`},
		{"database", `allow contains "x" if { input.access.resource.database == "main"; input.access.resource.table == "users"; input.access.resource.statement == "insert" }`, `allow contains "x" if { input.access.resource.database == "main"; input.access.resource.table == "users"; input.access.resource.statement == "delete" }`},
		{"server", `allow contains "x" if { input.access.resource.server == "git"; input.access.resource.tool == "push" }`, `allow contains "x" if { input.access.resource.server == "git"; input.access.resource.tool == "pull" }`},
		{"hour", `allow contains "x" if time.clock([time.parse_rfc3339_ns(input.time), "UTC"])[0] < 18`, `allow contains "x" if time.clock([time.parse_rfc3339_ns(input.time), "UTC"])[0] <= 18`},
		{"before", `allow contains "x" if input.time < "2026-03-01T00:00:00Z"`, `allow contains "x" if input.time < "2026-05-01T00:00:00Z"`},
		{"purpose", `allow contains "x" if input.purpose == "run"`, `allow contains "x" if input.purpose in {"run", "revert"}`},
		{"hide", "allow contains \"x\"\nhide contains \"y\" if input.session.client.surface == \"chat\"", "allow contains \"x\"\nhide contains \"y\" if input.session.client.surface == \"mail\""},
		{"mask", "allow contains \"x\"\nmask contains \"file://workspace/a/**\" if input.access.action == \"execute\"", "allow contains \"x\"\nmask contains \"file://workspace/b/**\" if input.access.action == \"execute\""},
		{"hold and ask", "ask contains \"x\" if input.tool.name == \"a\"\nhold contains \"y\" if input.tool.name == \"a\"", "ask contains \"x\" if input.tool.name == \"a\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, changed := must(t, tt.old), must(t, tt.changed)
			r, err := policydiff.Run(context.Background(), policydiff.Options{Old: old, New: changed, Tries: 6000})
			require.NoError(t, err)
			require.NotEmpty(t, r.Differences)
			checked(t, r, func() (*rego.Engine, *rego.Engine) { return must(t, tt.old), must(t, tt.changed) })
			same, err := policydiff.Run(context.Background(), policydiff.Options{Old: old, New: must(t, tt.old), Tries: 300})
			require.NoError(t, err)
			require.Empty(t, same.Differences)
			require.Zero(t, same.Changed)
			require.Equal(t, "tries", same.Stopped)
		})
	}
}

// TestSeed: the same seed finds the same, also with other engines.
func TestSeed(t *testing.T) {
	var texts []string
	for _, seed := range []uint64{1, 1, 2} {
		load := func(name string) *rego.Engine {
			pack, _ := policies.Pack(name)
			e, err := rego.New(rego.Options{Sources: []rego.Source{{FS: pack, NoTests: true}}, Timeout: time.Minute})
			require.NoError(t, err)
			return e
		}
		r, err := policydiff.Run(context.Background(), policydiff.Options{Old: load("workspace"), New: load("coding-agent"), Tries: 300, Seed: seed})
		require.NoError(t, err)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	require.Equal(t, texts[0], texts[1])
	require.NotEqual(t, texts[0], texts[2])
}

// TestEnds: a deadline ends a search with what it found, and anything else that
// ends the context is an error.
func TestEnds(t *testing.T) {
	e := must(t, `allow contains "x" if input.tool.name == "a"`)
	ctx, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	r, err := policydiff.Run(ctx, policydiff.Options{Old: e, New: e})
	require.NoError(t, err)
	require.Equal(t, "time", r.Stopped)
	require.Zero(t, r.Tried)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = policydiff.Run(ctx, policydiff.Options{Old: e, New: e})
	require.ErrorIs(t, err, context.Canceled)
	_, err = policydiff.Run(context.Background(), policydiff.Options{Old: e})
	require.Error(t, err)
	require.False(t, slices.ContainsFunc(r.Differences, policydiff.Difference.Loosens))
}
