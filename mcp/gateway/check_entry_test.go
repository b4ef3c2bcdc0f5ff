package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestAnEntryThatDoesNotFit: a tool whose entry names what is not there is not served. With a misspelt argument, which no call
// gives, nothing would be asked for and nothing kept, and the call would count as one that can be reverted.
func TestAnEntryThatDoesNotFit(t *testing.T) {
	for known, want := range map[string]string{
		`{"set": {"undo": {"snapshot": ["file://workspace/{kex}"]}}}`:                                  `file://workspace/{kex}: there is no argument "kex" of tool set; did you mean "key"?`,
		`{"set": {"effectClass": "pure", "needs": [{"action": "read", "resource": "db://x/{path}"}]}}`: `there is no argument "path" of tool set; valid are key, value`,

		`{"set": {"undo": {"compensate": {"tool": "drop_key", "args": {}}}}}`:                                                       `"compensate": there is no tool "drop_key" of the server; did you mean "drop-key"?`,
		`{"set": {"undo": {"compensate": {"tool": "drop-key", "args": {"kee": "x", "value": ""}}}}}`:                                `"compensate": there is no argument "kee" of tool drop-key; did you mean "key"?`,
		`{"set": {"undo": {"compensate": {"tool": "drop-key"}}}}`:                                                                   `"compensate": drop-key needs the argument "key"`,
		`{"set": {"undo": {"compensate": {"tool": "drop-key", "args": {"key": {"$from": "/input/kee"}, "value": ""}}}}}`:            `/input/kee: there is no argument "kee" of tool set; did you mean "key"?`,
		`{"set": {"undo": {"compensate": {"tool": "set", "args": {"key": "x", "value": {"$from": "/before/x"}}}}}}`:                 `/before/x: the entry has no "before" that would ask for it`,
		`{"set": {"undo": {"compensate": {"tool": "set", "args": {"key": "x", "value": [{"$each": "/input/v", "as": 1}]}}}}}`:       `there is no argument "v" of tool set`,
		`{"set": {"before": {"tool": "got", "args": {"key": "x"}}}}`:                                                                `"before": there is no tool "got" of the server; did you mean "get"?`,
		`{"set": {"verify": {"tool": "gett", "args": {}, "applied": "/x"}}}`:                                                        `"verify": there is no tool "gett" of the server`,
		`{"set": {"verify": {"tool": "get", "args": {"key": "x", "value": ""}, "applied": "/x", "equals": {"$from": "/input/x"}}}}`: `"verify": /input/x: there is no argument "x" of tool set`,

		`{"set": {"roles": {"/kex": "content"}}}`:                   `"roles": /kex: "kex" is not known, did you mean "key"? known: "key", "value"`,
		`{"set": {"roles": {"/key/*": "content"}}}`:                 `"roles": /key/*: "*" is not known`,
		`{"set": {"draft": true, "trustedFields": ["/keys/*/id"]}}`: `"trustedFields": /keys/*/id: "keys" is not known, did you mean "key"?`,
	} {
		t.Run(known, func(t *testing.T) {
			h := newGatewaySetup(t)
			h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": `+known+`}}`)
			held := h.gateway.Quarantined()
			require.Len(t, held, 1)
			require.Equal(t, "set", held[0].Tool)
			require.True(t, strings.HasPrefix(held[0].Why, "its entry does not fit: "), held[0].Why)
			require.Contains(t, held[0].Why, want)
			for _, served := range h.gateway.Tools() {
				require.NotEqual(t, "s__set", served.Name())
			}
		})
	}
}

// TestAnEntryThatFitsAnySchema: of a tool that does not say which arguments it has, or takes others too, nobody can tell.
func TestAnEntryThatFitsAnySchema(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object"}`,
		`{"type":"object","properties":{"a":{}},"additionalProperties":true}`,
		`{"type":"object","properties":{"a":{}},"anyOf":[{"required":["b"]}]}`,
	} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": h.scripted(strings.Replace(oneTool, `{"type":"object"}`, schema, 1))}, `{"s": {"tools": {"x": {"undo": {"snapshot": ["file://workspace/{b}"]}}}}}`)
		require.Empty(t, h.gateway.Quarantined(), schema)
		require.Equal(t, []string{"s__x"}, h.names(), schema)
	}
}

// TestAnEntryOfNoTool is told, once.
func TestAnEntryOfNoTool(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil), "t": h.server("store", nil)}, `{"s": {"tools": {"sett": {"effectClass": "pure"}}}}`)
	require.Equal(t, 1, strings.Count(h.log.String(), `there is no tool \"sett\" of the server; did you mean \"set\"?`), h.log.String())
}

// TestWithoutAnEntry: who is refused is told what to write into the gateway's configuration, and nothing about Go.
func TestWithoutAnEntry(t *testing.T) {
	h := newGatewaySetup(t)
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{{FS: policies.Workspace()}}})
	require.NoError(t, err)
	h.policy = engine
	h.open(map[string]string{"s": h.server("store", nil)}, "")
	out := h.call("s__set", tool.Args{"key": "a", "value": "1"})
	require.Equal(t, tool.StatusDenied, out.Status)
	for _, words := range []string{out.Error.Why, out.Error.Fix} {
		require.Contains(t, words, "remit init --config FILE --write")
		require.NotContains(t, words, "tool.")
	}
	require.Equal(t, "(none)", h.get("store.json"))
}

// TestWithoutUndo: who takes a call back that has no way back is told where one is written.
func TestWithoutUndo(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"set": {"effectClass": "pivot"}}}}`)
	tx := h.txn()
	_, err := tx.Invoke(t.Context(), "s__set", tool.Args{"key": "a", "value": "1"})
	require.NoError(t, err)
	r, err := tx.Revert(t.Context(), revert.Options{})
	require.ErrorContains(t, err, "not everything was reverted")
	require.Len(t, r.Items, 1)
	require.Contains(t, r.Items[0].Why, `the gateway's configuration has no "undo" for tool s__set`)
}
