package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// overTables returns rules that iterate over tables in every way that Rego has,
// in forms that become rules and in forms that must not.
func overTables() []string {
	return []string{
		`some row in data.rows; input.tool.name == row.name`,
		`some k, row in data.byname; input.tool.name == k; row.on`,
		`some k, row in data.byname; input.access.resource.name == row.name; k != "b"`,
		`input.tool.name == data.names[_]`,
		`input.tool.name in data.names`,
		`input.call.args.n in data.names`,
		`not input.tool.name in data.names`,
		`data.rows[i].name == input.tool.name; data.rows[i].n > 1`,
		`row := data.rows[_]; row.name == input.tool.name; row.root == input.access.resource.root`,
		`some pre in data.names; startswith(input.access.resource.path, pre)`,
		`some pre in data.names; startswith(input.call.args.n, pre)`,
		`some pat in data.globs; glob.match(pat, ["/"], input.access.resource.path)`,
		`some row in data.rows; to_number(input.call.args.n) == 1; input.tool.name == row.name`,
		`some row in data.rows; input.tool.name == row.name; to_number(input.call.args.n) == row.n`,
		`some row in data.mixed; input.tool.name == row`,
		`some row in data.mixed; input.call.args.n == row`,
		`some row in data.mixed; input.call.args.n == row.n`,
		`data.groups[g].members[_] == input.tool.name; g != "y"`,
		`some g; some m in data.groups[g].members; m == input.principal.roles[_]`,
		`some row in data.rows; count([x | x := row.tags[_]; x == input.tool.name]) > 0`,
		`some row in data.rows; input.tool.name == row.name; every tag in row.tags { tag != input.tool.version }`,
		`some row in data.rows; row.name == input.tool.name; not row.root`,
		`some row in data.empty; input.tool.name == row.name`,
		`some role in input.principal.roles; some row in data.rows; row.name == role`,
		`k := input.tool.name; data.byname[k].on`,
		`data.byname[input.tool.name].name == input.access.resource.name`,
		`listed`, `not listed`, `input.tool.name in picked`, `level == 2`, `deep(input.tool.name)`,
		`some row in made; input.tool.name == row`,
	}
}

// tableHelpers are helper rules that iterate over tables.
const tableHelpers = `package remit

listed if { some row in data.rows; row.name == input.tool.name }

picked contains row.name if { some row in data.rows; row.root == input.access.resource.root }

level := 2 if { some row in data.rows; row.name == input.tool.version }

deep(name) if { some row in data.rows; row.name == name }

made contains x if some x in data.names

made contains "b" if input.tool.version == "b"

hint contains "uses" if { "zz" in picked; "zz" in made }

`

// randomTables returns data in the form that the rules above iterate over.
func randomTables(rnd *rand.Rand) map[string]any {
	pick := func(from ...any) any { return from[rnd.IntN(len(from))] }
	text := func(from ...string) string { return from[rnd.IntN(len(from))] }
	name := func() any { return pick("a", "b", "ab", "n", "", "a/b", "workspace") }
	var rows, names, mixed []any
	byname, groups := map[string]any{}, map[string]any{}
	for range rnd.IntN(5) {
		r := map[string]any{"name": name(), "n": pick(1, 2, 1.5, "1", nil), "tags": []any{name(), name()}}
		if rnd.IntN(3) > 0 {
			r["root"] = pick("a", "workspace", "", nil, true)
		}
		if rnd.IntN(8) == 0 {
			r["name"] = pick(1, nil, true, []any{"a"}, map[string]any{"a": 1})
		}
		rows, names = append(rows, r), append(names, name())
		mixed = append(mixed, pick("a", 1, 1.0, nil, true, []any{"b"}, map[string]any{"n": 1}))
		byname[text("a", "b", "n")] = map[string]any{"name": name(), "on": pick(true, false, nil)}
		groups[text("x", "y")] = map[string]any{"members": []any{name(), pick("a", 1, nil)}}
	}
	if rnd.IntN(6) == 0 {
		names = append(names, pick(1, nil))
	}
	return map[string]any{
		"rows": orEmpty(rows), "names": orEmpty(names), "mixed": orEmpty(mixed), "byname": byname, "groups": groups, "empty": []any{},
		"globs": []any{"a*", pick("**", "a/*", "[a-b]*", "{a,b}*", `a\*`, "w?rkspace")},
	}
}

func orEmpty(list []any) []any { return append([]any{}, list...) }

func tablePolicy(rnd *rand.Rand, of []string) string {
	var b strings.Builder
	b.WriteString(tableHelpers)
	sets := []string{"deny", "ask", "hold", "allow", "hint", "label"}
	for i := range 1 + rnd.IntN(4) {
		fmt.Fprintf(&b, "%s contains \"%d\" if {\n", sets[rnd.IntN(len(sets))], i)
		for range rnd.IntN(2) {
			b.WriteString("\t" + []string{`input.access.action == "read"`, `input.call.declared`, `input.call.args.n > 0`, `to_number(input.call.args.n) > 0`, `input.tool.version in {"a", "b"}`}[rnd.IntN(5)] + "\n")
		}
		b.WriteString("\t" + of[rnd.IntN(len(of))] + "\n}\n\n")
	}
	if rnd.IntN(10) == 0 {
		b.WriteString("hint contains \"replaced\" if listed with data.rows as [{\"name\": \"a\"}]\n")
	}
	return b.String() + "allow contains \"else\" if input.tool.name != \"n\"\n"
}

// TestTablesAgree compares rules that were expanded from tables with the rules
// as written: decisions, reasons, positions and failures.
func TestTablesAgree(t *testing.T) {
	policies := max(statcheck.Size(100, 5000), 100) // fewer do not cover every case
	made, decisions, failures := 0, 0, 0
	for seed := range policies {
		rnd := rand.New(rand.NewPCG(uint64(seed), 21))
		of := overTables()
		if seed < 2*len(of) { // one alone, so that none hides another
			of = of[seed/2 : seed/2+1]
		}
		text, data := tablePolicy(rnd, of), randomTables(rnd)
		e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": text}, Data: data, Timeout: longTimeout})
		require.NoError(t, err, text)
		for _, set := range rego.SetNames() {
			if written, evaluated := rego.Rules(e, set); written != evaluated {
				made++
				break
			}
		}
		for _, r := range randomRequests(rnd, 40) {
			decisions++
			got, gotErr := e.Decide(context.Background(), r)
			want, wantErr := rego.DecidePlain(context.Background(), e, r)
			if wantErr != nil {
				failures++
			}
			if wantErr != nil && gotErr != nil {
				got, want = perm.Decision{}, perm.Decision{}
			}
			if a, b := fmt.Sprint(got, gotErr), fmt.Sprint(want, wantErr); a != b {
				shown, _ := json.Marshal(data)
				require.Fail(t, "the rules made of tables differ", "%s\n%s\n%+v\ngot  %s\nwant %s", text, shown, r, a, b)
			}
		}
	}
	t.Logf("%d decisions of %d policies, %d of them with rules made of tables, %d decisions that failed", decisions, policies, made, failures)
	require.Greater(t, made, policies/4)
	require.Greater(t, failures, decisions/100)
}

// tableText is a rule for each way to compare with a table.
const tableText = `package remit

import data.blocked

deny contains row.why if {
	some row in blocked
	input.access.resource.host == row.host
}

deny contains "a tool" if input.tool.name in data.tools

deny contains "a path" if { some pre in data.paths; startswith(input.access.resource.path, pre) }

allow contains "else" if input.access.action == "read"
`

func tableData(n int) map[string]any {
	var hosts, tools, paths []any
	for i := range n {
		hosts = append(hosts, map[string]any{"host": fmt.Sprintf("h%d.example.com", i), "why": fmt.Sprintf("host %d", i)})
		tools, paths = append(tools, fmt.Sprintf("tool_%d", i)), append(paths, fmt.Sprintf("secret_%d/", i))
	}
	return map[string]any{"blocked": hosts, "tools": tools, "paths": paths}
}

func tableEngine(t testing.TB, n int) *rego.Engine {
	t.Helper()
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": tableText}, Data: tableData(n), Timeout: longTimeout, CacheSize: -1})
	require.NoError(t, err)
	return e
}

// TestTablesKeepPlaces checks that a reason from a row has the position of the
// written rule, and appears once.
func TestTablesKeepPlaces(t *testing.T) {
	e := tableEngine(t, 20)
	written, evaluated := rego.Rules(e, "deny")
	require.Equal(t, []int{3, 60}, []int{written, evaluated})
	require.Empty(t, e.SlowRules(), "every rule is compiled")
	r := request()
	r.Access.Resource.Host, r.Tool.Name, r.Access.Resource.Path = "h7.example.com", "tool_3", "secret_5/x"
	require.Equal(t, []perm.Reason{
		{Text: "host 7", At: "p.rego:5", Set: "deny"}, {Text: "a tool", At: "p.rego:10", Set: "deny"}, {Text: "a path", At: "p.rego:12", Set: "deny"},
	}, decide(t, e, r).Reasons())
	x, err := e.Explain(context.Background(), r)
	require.NoError(t, err)
	require.Len(t, x.Rules, 4, "as written, not as evaluated")
}

func TestTablesTooLarge(t *testing.T) {
	e := rego.Within(tableEngine(t, 40), 100)
	written, evaluated := rego.Rules(e, "deny")
	require.Equal(t, []int{3, 81}, []int{written, evaluated}, "two tables fit")
	require.Contains(t, fmt.Sprint(e.SlowRules()), "100 rows are made rules, and it has 40")
	r := request()
	r.Access.Resource.Path = "secret_39/x"
	require.Equal(t, "a path", decide(t, e, r).Reasons()[0].Text)
}

func BenchmarkTables(b *testing.B) {
	for _, n := range []int{10, 1000} {
		e := tableEngine(b, n)
		b.Run(fmt.Sprintf("rows=%d/rules", n), func(b *testing.B) { benchmark(b, e, request()) })
		b.Run(fmt.Sprintf("rows=%d/scanned", n), func(b *testing.B) {
			for b.Loop() {
				if d, err := rego.DecidePlain(context.Background(), e, request()); err != nil || d.Effect() != perm.Allow {
					b.Fatal(d.Reasons(), err)
				}
			}
		})
	}
}

// TestTableRatio prints the cost of a table, expanded and iterated, against
// none.
func TestTableRatio(t *testing.T) {
	if !statcheck.Whole() {
		t.Skip("REMIT_LONG is not set")
	}
	small, large := tableEngine(t, 1), tableEngine(t, 1000)
	ways := []func(){
		func() { decide(t, small, request()) },
		func() { decide(t, large, request()) },
		func() { _, err := rego.DecidePlain(context.Background(), large, request()); require.NoError(t, err) },
	}
	times := make([][]time.Duration, len(ways))
	for range 7 {
		for i, way := range ways {
			begin, count := time.Now(), 0
			for time.Since(begin) < 50*time.Millisecond {
				way()
				count++
			}
			times[i] = append(times[i], time.Since(begin)/time.Duration(count))
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	one, rules, scanned := times[0][3], times[1][3], times[2][3]
	t.Logf("3 tables of 1 row %v; of 1000 rows as rules %v, %.1fx; gone over %v, %.1fx", one, rules, float64(rules)/float64(one), scanned, float64(scanned)/float64(one))
}
