package perm_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// vectors reads the cases of a golden file. The file is the contract: a change
// of the code that changes it also changes the meaning of stored texts.
func vectors[Case any](t *testing.T, name string, atLeast int) []Case {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "perm", name))
	require.NoError(t, err)
	var file struct{ Cases []Case }
	require.NoError(t, json.Unmarshal(data, &file))
	require.GreaterOrEqual(t, len(file.Cases), atLeast)
	return file.Cases
}

func TestResourceVectors(t *testing.T) {
	type vector struct {
		Text, Canonical, Decoded, Error string
		Facts                           *perm.ResourceFacts
	}
	for _, v := range vectors[vector](t, "resources.json", 50) {
		t.Run(v.Text, func(t *testing.T) {
			r, err := perm.ParseResource(v.Text)
			if v.Error != "" {
				require.ErrorContains(t, err, v.Error)
				require.True(t, r.IsZero())
				return
			}
			require.NoError(t, err)
			want := v.Canonical
			if want == "" {
				want = v.Text
			}
			require.Equal(t, want, r.String())
			require.NotNil(t, v.Facts)
			require.Equal(t, *v.Facts, r.Facts())
			if v.Decoded != "" {
				require.Equal(t, v.Decoded, hex.EncodeToString([]byte(r.Path())))
			}
			again, err := perm.ParseResource(r.String())
			require.NoError(t, err)
			require.Equal(t, r, again)
		})
	}
}

func TestFileResource(t *testing.T) {
	for path, text := range map[string]string{
		"":             "file://ws",
		".":            "file://ws",
		"a/b c":        "file://ws/a/b%20c",
		"caf\xe9":      "file://ws/caf%E9",
		"*.go":         "file://ws/%2A.go",
		"{x}":          "file://ws/%7Bx%7D",
		"%2e%2e/x":     "file://ws/%252e%252e/x",
		`..\x`:         "file://ws/..%5Cx",
		"...":          "file://ws/...",
		"line\nbreak#": "file://ws/line%0Abreak%23",
	} {
		r, err := perm.FileResource("ws", path)
		require.NoError(t, err, path)
		require.Equal(t, text, r.String())
		if path != "." {
			require.Equal(t, path, r.Path())
		}
		again, err := perm.ParseResource(text)
		require.NoError(t, err)
		require.Equal(t, r, again)
	}
}

func TestFileResourceRefuses(t *testing.T) {
	for _, path := range []string{"/", "/etc", "..", "../x", "a/../..", "a/../../b", "./..", "a//../../.."} {
		_, err := perm.FileResource("ws", path)
		require.ErrorIs(t, err, perm.ErrOutside, path)
	}
	for _, path := range []string{"a/..", "a/../b", "./a", "a/", "a//b", "a/.", "x\x00"} {
		_, err := perm.FileResource("ws", path)
		require.Error(t, err, path)
		require.NotErrorIs(t, err, perm.ErrOutside, path)
	}
	_, err := perm.FileResource("WS", "a")
	require.ErrorContains(t, err, "a root is")
	_, err = perm.FileResource("ws", strings.Repeat("ü", 2000))
	require.ErrorContains(t, err, "8 KiB")
}

func TestKindResource(t *testing.T) {
	for _, c := range []struct {
		kind      perm.Kind
		authority string
		segments  []string
		text      string
	}{
		{perm.KindHTTPS, "Example.com:8443", []string{"a", "?"}, "https://example.com:8443/a/%3F"},
		{perm.KindHTTP, "[::1]:80", nil, "http://[::1]"},
		{perm.KindExec, "git", nil, "exec://git"},
		{perm.KindExec, "", []string{"usr", "bin", "git"}, "exec:///usr/bin/git"},
		{perm.KindDB, "main", []string{"a*"}, "db://main/a%2A"},
		{perm.KindSecret, "github", nil, "secret://github"},
		{perm.KindMCP, "srv", []string{"tool"}, "mcp://srv/tool"},
	} {
		r, err := c.kind.Resource(c.authority, c.segments...)
		require.NoError(t, err, c.text)
		require.Equal(t, c.text, r.String())
		require.Equal(t, c.kind, r.Kind())
		require.Equal(t, c.segments, r.Segments())
	}
}

func TestKindResourceRefuses(t *testing.T) {
	for _, c := range []struct {
		kind      perm.Kind
		authority string
		segments  []string
		err       string
	}{
		{"", "a", nil, "valid kinds"},
		{"ftp", "a", nil, "valid kinds"},
		{perm.KindTool, "a", []string{"b"}, "has no path"},
		{perm.KindTool, "", nil, "a name is"},
		{perm.KindTool, strings.Repeat("a", 129), nil, "a name is"},
		{perm.KindExec, "bin/git", nil, "slash"},
		{perm.KindExec, "a\x00", nil, "NUL"},
		{perm.KindExec, "", nil, "a program is"},
		{perm.KindMCP, "s", []string{"a/b"}, "slash"},
		{perm.KindMCP, "s", []string{""}, "empty"},
		{perm.KindHTTPS, "*.org", nil, "bad host"},
		{perm.KindHTTPS, "h:*", nil, "bad port"},
		{perm.KindHTTPS, "[::1]x", nil, "IPv6"},
		{perm.KindHTTPS, strings.Repeat("a.", 127) + "a", nil, "bad host"},
	} {
		_, err := c.kind.Resource(c.authority, c.segments...)
		require.ErrorContains(t, err, c.err, "%s %q", c.kind, c.authority)
	}
}

func TestResourceLimits(t *testing.T) {
	longest := "file://ws/" + strings.Repeat("a", 8<<10-len("file://ws/"))
	_, err := perm.ParseResource(longest)
	require.NoError(t, err)
	_, err = perm.ParseResource(longest + "a")
	require.ErrorContains(t, err, "8 KiB")
	_, err = perm.ParseResource("file://ws/" + strings.Repeat("ü", 2000))
	require.ErrorContains(t, err, "8 KiB")
	_, err = perm.ParseResource("file://ws/\xff")
	require.ErrorContains(t, err, "UTF-8")
}

func TestResourceStatement(t *testing.T) {
	table, err := perm.KindDB.Resource("main", "users")
	require.NoError(t, err)
	insert, err := table.WithStatement("insert")
	require.NoError(t, err)
	require.Equal(t, "db://main/users?statement=insert", insert.String())
	require.Equal(t, "insert", insert.Statement())
	back, err := insert.WithStatement("")
	require.NoError(t, err)
	require.Equal(t, table, back)
	_, err = table.WithStatement("DROP TABLE")
	require.ErrorContains(t, err, "statement")
	tool, err := perm.KindTool.Resource("x")
	require.NoError(t, err)
	_, err = tool.WithStatement("insert")
	require.ErrorContains(t, err, "statement")
	_, err = perm.Resource{}.WithStatement("insert")
	require.Error(t, err)
}

func TestResourceAccessors(t *testing.T) {
	parse := func(text string) perm.Resource {
		r, err := perm.ParseResource(text)
		require.NoError(t, err)
		return r
	}
	file := parse("file://ws/a/b.go")
	require.Equal(t, []any{"ws", "ws", "", 0, "", "a/b.go", "b.go"},
		[]any{file.Root(), file.Authority(), file.Host(), file.Port(), file.Program(), file.Path(), file.Name()})
	url := parse("https://[::1]/x")
	require.Equal(t, []any{"", "::1", 443, "x"}, []any{url.Root(), url.Host(), url.Port(), url.Name()})
	require.Equal(t, "", parse("https://h").Name())
	require.Equal(t, "/bin/sh", parse("exec:///bin/sh").Program())
	segments := file.Segments()
	segments[0] = "changed"
	require.Equal(t, []string{"a", "b.go"}, file.Segments())
}

func TestResourceText(t *testing.T) {
	var zero perm.Resource
	require.True(t, zero.IsZero())
	require.Empty(t, zero.String())
	_, err := json.Marshal(zero)
	require.ErrorContains(t, err, "zero resource")

	r, err := perm.FileResource("ws", "a b")
	require.NoError(t, err)
	data, err := json.Marshal(map[perm.Resource]perm.Resource{r: r})
	require.NoError(t, err)
	require.JSONEq(t, `{"file://ws/a%20b": "file://ws/a%20b"}`, string(data))
	var back map[perm.Resource]perm.Resource
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, r, back[r])
	require.Error(t, json.Unmarshal([]byte(`"file://ws/../x"`), &zero))
	require.True(t, zero.IsZero())
}

// TestErrorsKeepArgumentsToThemselves checks that no error repeats the text,
// which can be an argument.
func TestErrorsKeepArgumentsToThemselves(t *testing.T) {
	for _, text := range []string{"file://ws/hunter2/../x", "hunter2", "https://hunter2@h/", "tool://hunter2!", "https://h:hunter2/"} {
		_, err := perm.ParseResource(text)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func FuzzParseResource(f *testing.F) {
	for _, seed := range []string{"file://ws/%2A", "https://[::1]:1/a/", "exec:///a", "db://m/t?statement=a", "mcp://s/t/u", "http://1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := perm.ParseResource(text)
		if err != nil {
			return
		}
		again, err := perm.ParseResource(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
		p, err := perm.ParsePattern(r.String())
		require.NoError(t, err)
		exact, ok := p.Exact().Get()
		require.True(t, ok)
		require.Equal(t, r, exact)
		require.True(t, p.Matches(r))
		_, err = json.Marshal(r.Facts())
		require.NoError(t, err)
		for _, s := range r.Segments() {
			require.NotContains(t, []string{"", ".", ".."}, s)
		}
	})
}

func ExampleParseResource() {
	r, err := perm.ParseResource("https://API.example.com:443/v1/Ünits/")
	fmt.Println(r, err)
	fmt.Println(r.Host(), r.Port(), r.Path())

	_, err = perm.ParseResource("https://127.1/admin")
	fmt.Println(err)
	// Output:
	// https://api.example.com/v1/%C3%9Cnits <nil>
	// api.example.com 443 v1/Ünits
	// not a valid resource: bad host: an IPv4 address is four decimal numbers joined by dots, without leading zeros
}

func ExampleFileResource() {
	r, err := perm.FileResource("workspace", "src/a b.go")
	fmt.Println(r, err)

	_, err = perm.FileResource("workspace", "../secrets")
	fmt.Println(err)
	// Output:
	// file://workspace/src/a%20b.go <nil>
	// not a valid resource: path outside its root: valid is a path below the root
}
