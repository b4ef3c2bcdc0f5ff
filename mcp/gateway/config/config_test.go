package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/revert/effect"
)

func env(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "t0ken", "EMPTY": "", "TWICE": "${TOKEN}"}[name]
	return v, ok
}

// TestRead: the format that clients have, with comments and variables; what clients understand and a gateway does not is told.
func TestRead(t *testing.T) {
	c, err := config.Parse("f.json", []byte(`{
		// mine
		"mcpServers": {
			"b": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "alwaysAllow": []},
			"a": {"command": "run", "args": ["${TWICE}", "${NONE:-of it}", "$HOME"], "env": {"A": "${EMPTY}"}, "cwd": "/x"},
			"off": {"command": "x", "disabled": true},
		},
		"theme": "dark",
		"remit": {"servers": {"off": {"tools": {}}, "a": {"sandbox": {"roots": ["workspace"], "readable": ["/opt/x/"]}}}},
	}`), env)
	require.NoError(t, err)
	require.Len(t, c.Servers, 2)
	a, b := c.Servers[0], c.Servers[1]
	require.Equal(t, []string{"${TOKEN}", "of it", "$HOME"}, a.Args)
	require.Equal(t, "/x", a.Dir)
	require.Equal(t, []string{"/opt/x"}, a.Sandbox.Readable)
	require.Equal(t, map[string]string{"A": ""}, a.Env)
	require.Equal(t, "Bearer t0ken", b.Headers["Authorization"])
	require.Equal(t, []string{`f.json:8:12: "theme" is not understood, and left alone`, `f.json:4:128: "alwaysAllow" is not understood, and left alone`}, c.Warnings)
}

// TestDraftOfAServerThatMoves: what was drafted for a server before it runs in the sandbox does not keep its calls from being reverted.
// What somebody has looked at counts, and so does what the network makes of it.
func TestDraftOfAServerThatMoves(t *testing.T) {
	for known, want := range map[string]effect.Class{
		`"sandbox": {"roots": ["workspace"]}, "tools": {"x": {"draft": true, "effectClass": "pivot"}}`:                  "",
		`"sandbox": {"roots": ["workspace"]}, "tools": {"x": {"draft": true, "effectClass": "pure"}}`:                   effect.Pure,
		`"sandbox": {"roots": ["workspace"]}, "tools": {"x": {"effectClass": "pivot"}}`:                                 effect.Pivot,
		`"sandbox": {"roots": ["workspace"]}, "tools": {"x": {"draft": true, "undo": "irreversible"}}`:                  effect.Pivot,
		`"sandbox": {"roots": ["workspace"], "network": true}, "tools": {"x": {"draft": true, "effectClass": "pivot"}}`: effect.Pivot,
		`"tools": {"x": {"draft": true, "effectClass": "pivot"}}`:                                                       effect.Pivot,
	} {
		c, err := config.Parse("f.json", []byte(`{"mcpServers": {"s": {"command": "x"}}, "remit": {"servers": {"s": {`+known+`}}}}`), env)
		require.NoError(t, err)
		require.Equal(t, want, c.Servers[0].Tools["x"].Class, known)
	}
}

// TestReadRefuses: what is wrong is said with its line and column, all of it at once, and without what a variable holds.
func TestReadRefuses(t *testing.T) {
	server := func(text string) string { return `{"mcpServers": {"s": ` + text + `}}` }
	known := func(text string) string {
		return `{"mcpServers": {"s": {"command": "x"}, "web": {"url": "https://example.com"}}, "remit": {"servers": ` + text + `}}`
	}
	entry := func(text string) string { return known(`{"s": {"tools": {"t": ` + text + `}}}`) }
	for text, want := range map[string]string{
		`{`:          "f.json:1:2: ",
		`[]`:         "f.json:1:1: the file is an array, want an object",
		`{"x": 1}`:   `"mcpServers" is missing`,
		server(`{}`): `f.json:1:22: "command" or "url" is missing`,
		server(`{"command": "x", "url": "https://x"}`):                                              "reached in one way",
		server(`{"command": ""}`):                                                                   "it is empty",
		server(`{"command": "${NOPE}"}`):                                                            "the variable NOPE is not set",
		server(`{"command": "x", "args": [1]}`):                                                     "a number, want a string",
		server(`{"command": "x", "type": "http"}`):                                                  `of type "stdio"`,
		server(`{"url": "ftp://x"}`):                                                                "want a URL of http or https",
		server(`{"url": "https://u:p@x"}`):                                                          "without a user",
		server(`{"url": "https://x", "type": "ws"}`):                                                `"http" or "sse"`,
		`{"mcpServers": {"a__b": {"command": "x"}}}`:                                                "has no two _ in a row",
		`{"mcpServers": {"a_": {"command": "x"}}}`:                                                  "does not end with _",
		`{"mcpServers": {"a.b": {"command": "x"}, "A-b": {"command": "x"}}}`:                        `the servers "A-b" and "a.b" could be taken for one another`,
		`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "x"}}}`:                            `"a" occurs twice`,
		known(`{"nothing": {}}`):                                                                    `there is no server "nothing" of "mcpServers"; valid are s, web`,
		known(`{"web": {"sandbox": {"roots": ["workspace"]}}}`):                                     "only a server with a command can run in the sandbox",
		known(`{"s": {"sandbox": {"roots": ["No Root"], "readable": ["x"]}}}`):                      "want an absolute path",
		known(`{"s": {"roots": ["No Root"]}}`):                                                      "the name of a root",
		known(`{"s": {"asks": ["all"]}}`):                                                           `a server asks for "elicitation", "sampling" or "roots"`,
		entry(`{"effectclass": "pure"}`):                                                            `did you mean "effectClass"?`,
		entry(`{"effectClass": "mild"}`):                                                            "unknown effect class",
		entry(`{"effectClass": "pure", "needs": [{"action": "delete", "resource": "file://w/a"}]}`): "needs no write and no delete",
		entry(`{"effectClass": "reversible"}`):                                                      "says how it is reverted",
		entry(`{"effectClass": "pure", "undo": "irreversible"}`):                                    "a tool of class pure is not irreversible",
		entry(`{"undo": {}}`):                                                                       `want one of "compensate" and "snapshot"`,
		entry(`{"undo": {"snapshot": ["file://workspace/*"]}}`):                                     "it is one file below a root",
		entry(`{"undo": {"compensate": {"args": {"a": {"$from": "input/x"}}}}}`):                    "want a pointer",
		entry(`{"undo": {"compensate": {"args": {"a": {"$from": "/inpt/x"}}}}}`):                    "a pointer begins with /input, /output or /before",
		entry(`{"undo": {"compensate": {"args": {"a": {"$each": "/outputs", "as": 1}}}}}`):          "a pointer begins with /input, /output or /before",
		entry(`{"needs": [{"action": "write", "resource": "nowhere"}]}`):                            "not a valid",
		entry(`{"needs": [{"action": "wipe", "resource": "file://w/a"}]}`):                          "unknown action",
		entry(`{"timeout": "soon"}`):                                                                "a duration above zero",
		entry(`{"errors": "fine"}`):                                                                 `"no_effect" or "unknown"`,
		entry(`{"destination": "moon"}`):                                                            "unknown destination",
		entry(`{"verify": {"args": {}}}`):                                                           `"tool" is missing`,
		known(`{"s": {"sandbox": {"roots": ["workspace"]}, "tools": {"t": {"undo": {"snapshot": ["file://workspace/a"]}}}}}`): "needs no snapshot",
	} {
		_, err := config.Parse("f.json", []byte(text), env)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), want, text)
		require.True(t, strings.HasPrefix(err.Error(), "f.json"), err.Error())
		require.NotContains(t, err.Error(), "t0ken")
	}
}
