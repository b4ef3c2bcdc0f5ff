package connect

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

var bothLayouts = []struct {
	format format
	layout layout
}{
	{jsonFormat{}, layout{"mcpServers", true}},
	{jsonFormat{}, layout{"servers", false}},
	{tomlFormat{}, layout{"mcp_servers", false}},
}

// outAndBack takes every server of a text out and puts a gateway in, then the other way
// round, going by the text alone. It returns the text between; nil: it is refused.
func outAndBack(t *testing.T, f format, l layout, body []byte) (between []byte) {
	tables, err := f.tables(body, l)
	if err != nil {
		return nil
	}
	before, err := f.values(body)
	if err != nil {
		return nil
	}
	var away, home []change
	for _, table := range tables {
		if len(table.servers) == 0 || table.find("the gateway") != nil {
			return nil
		}
		e := entry{}
		e.set("command", "/opt/remit")
		e.set("args", []string{"gateway", "--config", "a \"b\"\\\x7f"})
		a := change{path: table.path, in: []piece{{name: "the gateway", entry: e}}}
		h := change{path: table.path, out: []string{"the gateway"}}
		for _, s := range table.servers {
			if s.odd != "" {
				return nil // it stays
			}
			a.out = append(a.out, s.name)
			h.in = append(h.in, piece{s.name, s.raw, s.entry})
		}
		away, home = append(away, a), append(home, h)
	}
	if len(away) == 0 {
		return nil
	}
	between, err = edited(f, body, away)
	if err != nil {
		return nil
	}
	now, err := f.tables(between, l)
	require.NoError(t, err, "%s", between)
	require.Len(t, now, len(tables))
	for i := range now {
		require.Len(t, now[i].servers, 1, "%s", between)
		require.True(t, now[i].servers[0].entry.same(away[i].in[0].entry), "%s", between)
	}
	back, err := edited(f, between, home)
	if err != nil {
		_, isTOML := f.(tomlFormat)
		require.True(t, isTOML, "%s\n%s: %v", body, between, err)
		return between // dates and the like have no form as JSON to come back from
	}
	after, err := f.values(back)
	require.NoError(t, err)
	if _, isTOML := f.(tomlFormat); isTOML && !reflect.DeepEqual(before, after) {
		require.True(t, sameJSON(marshal(before), marshal(after)), "%s\n%s", body, back)
	} else {
		require.True(t, reflect.DeepEqual(before, after), "%s\n%s\n%s", body, between, back)
	}
	return between
}

func FuzzEdit(f *testing.F) {
	for _, name := range []string{"claude-code", "codex", "cursor", "vscode"} {
		archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(file.Data)
		}
	}
	for _, text := range editSamples {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_, body, err := opened(text)
		if err != nil {
			return
		}
		for _, both := range bothLayouts {
			outAndBack(t, both.format, both.layout, body)
		}
	})
}

// editSamples are texts in which commas, comments and line ends are where edits go wrong.
var editSamples = []string{
	`{"mcpServers":{"a":{"command":"x"}}}`,
	`{"mcpServers":{"a":{},"b":{}}}`,
	"{\"mcpServers\":{\"a\":{},}} // no line end",
	"{\n\t\"servers\" : { /* 1 */ \"a\" /* 2 */ : /* 3 */ {} /* 4 */ , /* 5 */ \"b\" : {} /* 6 */ } }",
	"{\"servers\": { // \"{\n \"a\": {}, // a\n // b\n \"b\": {} // c\n}}",
	"// {\n{\"servers\":{\"a\":{\"x\":\"}\"}}}\r\n",
	"{\r\n  \"servers\": {\r\n    \"a\": {\r\n    },\r\n    \"b\": {}\r\n  }\r\n}",
	`{"projects":{"/a":{"mcpServers":{"x":{}}},"/b":{"mcpServers":{"x":{},"y":{}}}},"mcpServers":{"z":{}}}`,
	`{"mcpServers":{"\u0061":{"command":"\ud83d\ude00"}}}`,
	"[mcp_servers.a]\ncommand = \"x\"",
	"[mcp_servers]\na = { command = \"x\" }\nb.command = \"y\"\nb.args = []\n[other]\nx = 1\n",
	"mcp_servers.a.command = \"x\"\nother = 1\n",
	"[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.b]\n[mcp_servers.a.env]\nX = '''\n[mcp_servers.c]\n'''\n[z]\n",
	"[mcp_servers.'a b'.env]\n\"x.y\" = \"\"\"\\\n  z\"\"\"\n# end",
	"[mcp_servers.a]\r\ncommand = \"x\"\r\n\r\n[mcp_servers.b]\r\nurl = \"y\"\r\n",
	"[[other]]\nx = 1\n[mcp_servers.a]\ncommand = 'x'\n[[other]]\nx = 2\n",
	"[mcp_servers.a]\nwhen = 2026-01-02\nf = 1e3\n[mcp_servers.b]\nn = 0x10\n",
}

// TestSamplesGoOutAndBack: what the fuzzer starts from is edited at all, and keeps its
// comments and its line ends between.
func TestSamplesGoOutAndBack(t *testing.T) {
	for _, text := range editSamples {
		tried := 0
		for _, both := range bothLayouts {
			between := outAndBack(t, both.format, both.layout, []byte(text))
			if between == nil {
				continue
			}
			tried++
			if strings.Contains(text, "\r\n") && !strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") {
				require.NotContains(t, strings.ReplaceAll(string(between), "\r\n", ""), "\n", "%q", between)
			}
			if strings.HasPrefix(text, "{") {
				for _, comment := range []string{"/* 1 */", "/* 2 */", "/* 4 */", "/* 5 */", "/* 6 */", "// a\n", "// b\n", "// c\n", "// no line end"} {
					if comment != "/* 2 */" { // inside of what goes
						require.Equal(t, strings.Contains(text, comment), strings.Contains(string(between), comment), "%s in %q", comment, between)
					}
				}
			}
		}
		require.Equal(t, 1, tried, "%q", text)
	}
}

// TestStandardJSONStaysSo: clients that know no trailing commas can read what is left.
func TestStandardJSONStaysSo(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for mask := range 1 << len(names) {
		for _, separator := range []string{",", ",\n  ", " , "} {
			var members, out []string
			for i, name := range names {
				members = append(members, `"`+name+`": {"command": "x"}`)
				if mask>>i&1 == 1 {
					out = append(out, name)
				}
			}
			body := []byte(`{"mcpServers": {` + strings.Join(members, separator) + `}}`)
			for _, in := range [][]piece{nil, {{name: "new", entry: entry{{"x", marshal("y")}}}}} {
				after, err := edited(jsonFormat{}, body, []change{{path: []string{"mcpServers"}, out: out, in: in}})
				require.NoError(t, err)
				require.NotNil(t, decoded(after), "%s", after)
				tables, err := jsonFormat{}.tables(after, layout{key: "mcpServers"})
				require.NoError(t, err)
				want := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(out, name) })
				if len(in) > 0 {
					first := slices.Index(names, append(out, "")[0])
					if first < 0 {
						first = len(want)
					}
					want = slices.Insert(want, min(first, len(want)), "new")
				}
				got := []string{}
				for _, s := range tables[0].servers {
					got = append(got, s.name)
				}
				require.Equal(t, want, got, "%s", after)
			}
		}
	}
}

func TestWriteSeesWhoWroteMeanwhile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("one"), 0o644))
	is, err := look(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, []byte("two"), 0o644))
	require.ErrorIs(t, is.swap([]byte("mine")), errMoved)
	require.ErrorIs(t, write(name, nil, []byte("new"), nil), errMoved)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "two", string(text))
	require.NoError(t, os.Remove(name))
	require.ErrorIs(t, is.swap([]byte("mine")), errMoved)
	left, err := os.ReadDir(filepath.Dir(name))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDepth(t *testing.T) {
	require.Equal(t, -1, tooDeep([]byte(strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth)+"[")))
	require.Equal(t, maxDepth, tooDeep([]byte(strings.Repeat("[", maxDepth+1))))
	require.Equal(t, -1, tooDeep([]byte(`"`+strings.Repeat("[", maxDepth+1)+`\"[" /*`+strings.Repeat("{", maxDepth+1)+`*/ //`+strings.Repeat("[", maxDepth+1))))
	_, err := jsonFormat{}.tables([]byte(strings.Repeat(`{"a":`, 1<<20)), layout{key: "a"})
	require.ErrorContains(t, err, "nested more than")
}
