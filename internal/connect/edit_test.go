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
		a := change{path: table.path, in: []serverText{{name: "the gateway", entry: e}}}
		h := change{path: table.path, out: []string{"the gateway"}}
		for _, s := range table.servers {
			if s.odd != "" {
				return nil // it stays
			}
			a.out = append(a.out, s.name)
			h.in = append(h.in, serverText{name: s.name, raw: s.raw, entry: s.entry})
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
	"{\"servers\": {\n \"a\": {}, // a\n \"b\": {},\n \"c\": {}}}",
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
			for _, in := range [][]serverText{nil, {{name: "new", entry: entry{{"x", marshal("y")}}}}} {
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
	is, err := loadFile(name)
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

func TestRemoveSeesWhoWroteMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("a"), 0o600))
	held, err := loadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("b"), 0o600))
	require.ErrorIs(t, held.remove(), errMoved)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "b", string(text))
	held, err = loadFile(path)
	require.NoError(t, err)
	require.NoError(t, held.remove())
	require.NoError(t, held.remove(), "it is gone already")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestElementsOfLists: an element goes in and out, and a comment that a person
// wrote beside it keeps the list.
func TestElementsOfLists(t *testing.T) {
	for _, tt := range [][3]string{
		{"{}", "{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}", "{}"},
		{"{\"a\": {\"b\": [0,]}}", "{\"a\": {\"b\": [0, 1,]}}", "{\"a\": {\"b\": [0,]}}"},
		{"{\"a\": {\"b\": [ /* x */ ]}}", "{\"a\": {\"b\": [ /* x */\n  1\n]}}", "{\"a\": {\"b\": [ /* x */\n]}}"},
	} {
		l := listElement{Path: []string{"a", "b"}, Value: []byte("1")}
		in, err := l.added([]byte(tt[0]))
		require.NoError(t, err)
		require.Equal(t, tt[1], string(in))
		out, err := l.removed(in)
		require.NoError(t, err)
		require.Equal(t, tt[2], string(out))
	}
	l := listElement{Path: []string{"a"}, Value: []byte("1")}
	in, err := l.added([]byte("{\n\t\"x\": 0\n}"))
	require.NoError(t, err)
	out, err := l.removed([]byte(strings.Replace(string(in), "1", "1 // mine", 1)))
	require.NoError(t, err)
	require.Contains(t, string(out), "// mine")
	require.Contains(t, string(out), `"a"`)
}

func TestDepth(t *testing.T) {
	require.Equal(t, -1, tooDeep([]byte(strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth)+"[")))
	require.Equal(t, maxDepth, tooDeep([]byte(strings.Repeat("[", maxDepth+1))))
	require.Equal(t, -1, tooDeep([]byte(`"`+strings.Repeat("[", maxDepth+1)+`\"[" /*`+strings.Repeat("{", maxDepth+1)+`*/ //`+strings.Repeat("[", maxDepth+1))))
	_, err := jsonFormat{}.tables([]byte(strings.Repeat(`{"a":`, 1<<20)), layout{key: "a"})
	require.ErrorContains(t, err, "nested more than")
}

// TestProven: an edit that does not do what was meant, or more, is not written.
func TestProven(t *testing.T) {
	before := []byte(`{"a": 1, "mcpServers": {"x": {"command": "x"}, "y": {}}}`)
	c := change{path: []string{"mcpServers"}, out: []string{"x"}, in: []serverText{{name: "new"}}}
	prove := func(after string) error { return proven(jsonFormat{}, before, []byte(after), []change{c}) }
	require.NoError(t, prove(`{"a": 1, "mcpServers": {"y": {}, "new": {}}}`))
	require.ErrorContains(t, prove(`{"a": 1, "mcpServers": {"y": {}}}`), "so that new is in its place")
	require.ErrorContains(t, prove(`{"a": 1, "mcpServers": {"x": {}, "y": {}, "new": {}}}`), "so that x is out of it")
	require.ErrorContains(t, prove(`{"a": 2, "mcpServers": {"y": {}, "new": {}}}`), "without changing what else it says")
	require.ErrorContains(t, prove(`{"a": 1, "mcpServers": {"y": [], "new": {}}}`), "without changing what else it says")
	require.ErrorContains(t, prove(`{"a": 1, "mcpServers": {"y": {}, "new": {}`), "without breaking it")
}

// TestVariables: each client's are brought into the gateway's form, or keep a server where
// it is.
func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		dialect           variableSyntax
		project, text     string
		want, why, theirs string
	}{
		{shell, "", "a ${A} ${B_1:-x y}", "a ${A} ${B_1:-x y}", "", "A B_1"},
		{shell, "", "$A 100% {x}", "$A 100% {x}", "", ""},
		{shell, "", "${env:A}", "", "it uses ${env:A}, which only C can replace", ""},
		{shell, "", "${A", "", "it uses ${A", ""},
		{editor, "/p/q", "${env:A}/${workspaceFolder}/${workspaceFolderBasename}/${userHome}", "${A}//p/q/q//h", "", "A"},
		{editor, "", "${userHome}${workspaceFolder}", "", "${workspaceFolder}", ""},
		{editor, "/p", "${A}", "", "${A}", ""},
		{editor, "/p", "${input:t}", "", "${input:t}", ""},
		{literal, "/p", "$A", "$A", "", ""},
		{posix, "", "$A-${B} ${C:-x}", "${A}-${B} ${C:-x}", "", "A B C"},
		{posix, "", "$A ${A}", "${A} ${A}", "", "A"},
		{posix, "", "$A ${A:-x}", "", "it uses ${A:-x}", ""},
		{posix, "", "$1", "", "it uses $1", ""},
		{braces, "", "{env:A} {x} $B", "${A:-} {x} $B", "", "A"},
		{braces, "", "{file:~/key}", "", "it uses {file:~/key}, which only C can replace", ""},
		{braces, "", "${A}", "", "it has a text with ${A} in it", ""},
		{literal, "/p", "x${A}", "", "it has a text with ${A} in it, which C passes on and the gateway would replace", ""},
	} {
		s := variableRewriter{variableSyntax: tt.dialect, client: "C", home: "/h", project: tt.project}
		got, why := s.text(tt.text)
		if tt.why != "" {
			require.Contains(t, why, tt.why)
			continue
		}
		require.Empty(t, why, tt.text)
		require.Equal(t, tt.want, filepath.ToSlash(got))
		require.Equal(t, tt.theirs, strings.Join(s.names, " "))
	}
}

// TestTaken: what an entry says is what the gateway does, or the server stays.
func TestTaken(t *testing.T) {
	for _, tt := range []struct{ entry, want, why string }{
		{`{"command": "x", "type": "stdio", "enabled": true, "disabled": false, "more": [1]}`, `{"command": "x", "more": [1]}`, ""},
		{`{"headers": {"A": "b"}, "serverUrl": "https://a"}`, `{"type": "http", "headers": {"A": "b"}, "url": "https://a"}`, ""},
		{`{"type": "streamable-http", "url": "https://a"}`, `{"type": "http", "url": "https://a"}`, ""},
		{`{"type": "sse", "url": "https://a"}`, `{"type": "sse", "url": "https://a"}`, ""},
		{`{"type": "ws", "url": "https://a"}`, "", "its type \"ws\" is not one"},
		{`{"type": "http", "command": "x"}`, "", "its type \"http\" is not one"},
		{`{"command": "x", "url": "https://a"}`, "", "neither a command nor a URL, or both"},
		{`{"command": 1}`, "", "neither a command nor a URL, or both"},
		{`{"command": "x", "args": "y"}`, "", `its "args" is not a list of texts`},
		{`{"command": "x", "args": ["y", 1]}`, "", `its "args" is not a list of texts`},
		{`{"command": "x", "env": []}`, "", `its "env" is not an object of texts`},
		{`{"command": "x", "env": {"A": 1}}`, "", `its "env" is not an object of texts`},
		{`{"command": "x", "cwd": 1}`, "", `its "cwd" is not a text`},
		{`{"command": "x", "cwd": null, "args": null, "env": null}`, `{"command": "x"}`, ""},
		{`{"command": "x", "disabled": true}`, "", "it is disabled"},
		{`{"command": "x", "enabled": false}`, "", "it is disabled"},
		{`{"command": "x", "disabledTools": ["w"]}`, "", `it is restricted by "disabledTools"`},
		{`{"command": "x", "disabledTools": []}`, `{"command": "x", "disabledTools": []}`, ""},
		{`{"command": "x", "tools": ["*"]}`, `{"command": "x", "tools": ["*"]}`, ""},
		{`{"command": "x", "sandboxEnabled": true}`, "", `it is restricted by "sandboxEnabled"`},
		{`{"url": "https://a", "oauth": {"clientId": "x"}}`, "", `it needs "oauth", which only C knows`},
		{
			`{"url": "https://a", "bearer_token_env_var": "T", "env_http_headers": {"H": "V"}, "http_headers": {"G": "w"}}`,
			`{"type": "http", "url": "https://a", "headers": {"Authorization": "Bearer ${T}", "H": "${V}", "G": "w"}}`, "",
		},
		{`{"command": "x", "env_vars": ["A", "B"], "env": {"A": "own"}}`, `{"command": "x", "env": {"A": "own", "B": "${B}"}}`, ""},
		{`{"command": "x", "env_vars": [{"name": "A"}]}`, "", `its "env_vars" are not names`},
		{`{"url": "https://a", "http_headers": {"A": "${B}"}}`, "", `its "http_headers" are not plain texts`},
		{`{"url": "https://a", "env_http_headers": {"A": 1}}`, "", `its "env_http_headers" are not texts`},
	} {
		tables, err := jsonFormat{}.tables([]byte(`{"mcpServers": {"s": `+tt.entry+`}}`), layout{key: "mcpServers"})
		require.NoError(t, err)
		got, why := taken(tables[0].servers[0], &variableRewriter{client: "C"})
		require.Contains(t, why, tt.why, tt.entry)
		require.Equal(t, tt.why == "", why == "", "%s: %s", tt.entry, why)
		if tt.why == "" {
			require.True(t, got.sameServer(entryOf(t, tt.want)), "%s", got.object())
			for _, f := range entryOf(t, tt.want) {
				is, there := got.get(f.Name)
				require.True(t, there && sameJSON(is, f.Value), "%s in %s", f.Name, got.object())
			}
		}
	}
}

func entryOf(t *testing.T, text string) entry {
	t.Helper()
	tables, err := jsonFormat{}.tables([]byte(`{"t": {"s": `+text+`}}`), layout{key: "t"})
	require.NoError(t, err)
	return tables[0].servers[0].entry
}
