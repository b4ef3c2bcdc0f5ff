package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRealServersLibrary: what the protocol's own server has to be read is listed, read, completed and refused through remit as by itself, byte
// by byte apart from names; in the sandbox, too.
func TestRealServersLibrary(t *testing.T) {
	node, modules := realServers(t)
	completion := func(kind, member, name, argument, value string, context map[string]any) map[string]any {
		p := map[string]any{"ref": map[string]any{"type": kind, member: name}, "argument": map[string]any{"name": argument, "value": value}}
		if context != nil {
			p["context"] = map[string]any{"arguments": context}
		}
		return p
	}
	prompt := func(name string, args map[string]any) map[string]any {
		if args == nil {
			return map[string]any{"name": name}
		}
		return map[string]any{"name": name, "arguments": args}
	}
	for _, way := range []string{"plain", "boxed"} {
		t.Run(way, func(t *testing.T) {
			h := newGatewaySetup(t)
			entry, known := h.node(node, modules, "everything", nil, nil), ""
			if way == "boxed" {
				known = `{"s": {"sandbox": {"roots": ["workspace"], "readable": [` + fmt.Sprintf("%q", filepath.Dir(modules)) + `]}}}`
			}
			here := direct(t, entry)
			h.open(map[string]string{"s": entry}, known)
			there := h.through()
			for method, member := range map[string]string{"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"} {
				var want, got map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(here.request(method, map[string]any{}).Result, &want))
				require.NoError(t, json.Unmarshal(there.request(method, map[string]any{}).Result, &got))
				require.Greater(t, len(want[member]), 100)
				require.Equal(t, compacted(t, want[member]), strings.ReplaceAll(compacted(t, got[member]), `"name":"s__`, `"name":"`), method)
			}
			for _, r := range []struct {
				method string
				params map[string]any
			}{
				{"resources/read", map[string]any{"uri": "demo://resource/static/document/features.md"}},
				{"resources/read", map[string]any{"uri": "demo://resource/dynamic/text/7"}},
				{"resources/read", map[string]any{"uri": "demo://resource/dynamic/blob/7"}},
				{"resources/read", map[string]any{"uri": "demo://resource/dynamic/text/no"}},
				{"resources/read", map[string]any{"uri": "demo://nowhere"}},
				{"prompts/get", prompt("simple-prompt", nil)},
				{"prompts/get", prompt("args-prompt", map[string]any{"city": "<Ü>", "state": "x"})},
				{"prompts/get", prompt("args-prompt", map[string]any{})},
				{"prompts/get", prompt("resource-prompt", map[string]any{"resourceType": "Text", "resourceId": "2"})},
				{"completion/complete", completion("ref/prompt", "name", "completable-prompt", "department", "S", nil)},
				{"completion/complete", completion("ref/prompt", "name", "completable-prompt", "name", "", map[string]any{"department": "Sales"})},
				{"completion/complete", completion("ref/resource", "uri", "demo://resource/dynamic/text/{resourceId}", "resourceId", "1", nil)},
			} {
				want := here.request(r.method, r.params)
				params := maps.Clone(r.params)
				if name, ok := params["name"].(string); ok {
					params["name"] = "s__" + name
				}
				if ref, ok := params["ref"].(map[string]any); ok && ref["name"] != nil {
					params["ref"] = map[string]any{"type": ref["type"], "name": fmt.Sprint("s__", ref["name"])}
				}
				got := there.request(r.method, params)
				if want.Error != nil {
					require.NotNil(t, got.Error, "%s %v: %s", r.method, r.params, got.Result)
					require.Equal(t, compacted(t, want.Error), compacted(t, got.Error), "%s %v", r.method, r.params)
					continue
				}
				members := got.members(t)
				maps.DeleteFunc(members, func(name, _ string) bool { return name == "ttlMs" || name == "cacheScope" })
				if blob := "demo://resource/dynamic/blob/7"; r.params["uri"] == blob { // it holds the time
					require.Contains(t, members["contents"], blob)
					continue
				}
				require.Equal(t, undated(want.members(t)), undated(members), "%s %v", r.method, r.params)
			}
		})
	}
}
