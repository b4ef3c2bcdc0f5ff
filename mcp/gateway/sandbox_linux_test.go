package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// sandboxedProcess is what is known of a server in the sandbox of whose tools nothing is known.
const sandboxedProcess = `{"s": {"sandbox": {"roots": ["workspace"]}}}`

// TestBox: what a server in the sandbox does to files is reverted without a word about its tools: alone, after a commit, and
// where somebody else wrote in between only as far as nothing of theirs is lost.
func TestBox(t *testing.T) {
	h := newGatewaySetup(t)
	h.put("store.json", `{"a":"1"}`)
	h.open(map[string]string{"s": h.server("store", nil)}, sandboxedProcess)
	s := h.session()
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		for _, c := range []agent.BatchCall{
			{Tool: "s__set", Input: tool.Args{"key": "b", "value": "2"}},
			{Tool: "file_write", Input: tool.Args{"path": "note.txt", "content": "x"}},
			{Tool: "s__set", Input: tool.Args{"key": "c", "value": "3"}},
			{Tool: "s__drop_key", Input: tool.Args{"key": "a"}},
		} {
			out, err := tx.Invoke(t.Context(), c.Tool, c.Input)
			if err != nil {
				return err
			}
			require.Len(t, out.Changes, 1, c.Tool)
		}
		return nil
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"b":"2","c":"3"}`, h.get("store.json"))
	out := h.call("s__get", tool.Args{"key": "c"})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	_, err = s.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, `{"a":"1"}`, h.get("store.json"))
	require.Equal(t, "(none)", h.get("note.txt"))
	require.Contains(t, string(h.call("s__get", tool.Args{"key": "a"}).Output), `"value":"1"`, "the server sees what is there again")
}

// TestBoxThatFails: nothing of what a call that failed wrote reaches the root, and the next call finds nothing of it either.
func TestBoxThatFails(t *testing.T) {
	h := newGatewaySetup(t)
	h.put("store.json", `{"a":"1"}`)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"sandbox": {"roots": ["workspace"]}, "tools": {"hang": {"timeout": "100ms"}, "set": {"effectClass": "pure"}}}}`)
	for _, tt := range []struct {
		call string
		args tool.Args
		why  string
	}{
		{"s__half", tool.Args{}, "it broke"},
		{"s__die", tool.Args{}, "has gone"},
		{"s__hang", tool.Args{}, "time"},
		{"s__set", tool.Args{"key": "b", "value": "2"}, "the tool is said to only read, and changed 1 files"},
	} {
		out := h.call(tt.call, tt.args)
		require.Contains(t, []tool.Status{tool.StatusFailed, tool.StatusTimeout}, out.Status, "%s: %s", tt.call, out.Text)
		require.Contains(t, out.Error.Why, tt.why)
		require.Equal(t, `{"a":"1"}`, h.get("store.json"))
		out = h.call("s__get", tool.Args{"key": "a"})
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
		require.Contains(t, string(out.Output), `"value":"1"`)
	}
}

// TestBoxKeepsFilesOpen: a server that holds a file open goes on with it after its call was applied.
func TestBoxKeepsFilesOpen(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, sandboxedProcess)
	for i := 1; i <= 3; i++ {
		out := h.call("s__append", tool.Args{})
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
		require.Equal(t, strings.Repeat("line\n", i), h.get("store.json.log"))
	}
}

// TestBoxWritesLate: what a server writes between two calls is not lost, and goes with the next one.
func TestBoxWritesLate(t *testing.T) {
	h := newGatewaySetup(t)
	h.scratch = t.TempDir()
	signal := t.TempDir()
	h.open(map[string]string{"s": h.server("store", map[string]string{"GO": filepath.Join(signal, "go")})},
		`{"s": {"sandbox": {"roots": ["workspace"], "readable": [`+fmt.Sprintf("%q", signal)+`]}}}`)
	require.Equal(t, tool.StatusDone, h.call("s__later", tool.Args{}).Status)
	require.NoError(t, os.WriteFile(filepath.Join(signal, "go"), nil, 0o644))
	for there := false; !there; { // in the copy
		require.NoError(t, t.Context().Err())
		found, err := filepath.Glob(filepath.Join(h.scratch, "*", "0", "store.json.late"))
		require.NoError(t, err)
		there = len(found) > 0
	}
	require.Equal(t, "(none)", h.get("store.json.late"), "it belongs to no call")
	out := h.call("s__await", tool.Args{})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Len(t, out.Changes, 1)
	require.Equal(t, "late", h.get("store.json.late"))
}

// TestBoxThatNeverRests: a server that goes on writing is looked at while it stands.
func TestBoxThatNeverRests(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, sandboxedProcess)
	require.Equal(t, tool.StatusDone, h.call("s__churn", tool.Args{}).Status)
	for i := range 20 {
		out := h.call("s__set", tool.Args{"key": "a", "value": fmt.Sprint(i)})
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
	}
}

// TestBoxIsDown: a call to a server that does not start in the sandbox has no effect, of whatever class it is, and who reads why is told
// what is not there.
func TestBoxIsDown(t *testing.T) {
	for network, none := range map[bool]bool{false: true, true: false} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": h.scripted(oneTool)}, `{"s": {"tools": {"x": {"effectClass": "pivot"}}}}`)
		require.NoError(t, h.gateway.Close())
		h.config = strings.Replace(h.config, `{"tools"`, fmt.Sprintf(`{"sandbox": {"roots": ["workspace"], "network": %t}, "tools"`, network), 1) // it sees its script no more
		h.begin()
		out := h.call("s__x", tool.Args{})
		require.Equal(t, tool.StatusFailed, out.Status, "%+v", out.Error)
		require.Contains(t, out.Error.Why, "it ended before it answered")
		require.Contains(t, out.Error.Why, `its roots and what is "readable"`)
		require.Equal(t, none, strings.Contains(out.Error.Why, "no network"))
	}
}

// TestBoxIsOne: the server sees nothing beside its roots and what it was given to read; calls have it one after the other.
func TestBoxIsOne(t *testing.T) {
	h := newGatewaySetup(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "store.json"), []byte(`{"a":"secret"}`), 0o644))
	h.open(map[string]string{"s": h.server("store", nil), "out": strings.Replace(h.server("store", nil), filepath.Join(h.dir, "store.json"), filepath.Join(outside, "store.json"), 1)},
		`{"s": {"sandbox": {"roots": ["workspace"]}}, "out": {"sandbox": {"roots": ["workspace"]}}}`)
	out := h.call("out__get", tool.Args{"key": "a"})
	require.Equal(t, tool.StatusFailed, out.Status)
	require.NotContains(t, out.Text, "secret")

	tx := h.txn()
	var asks []agent.BatchCall
	for i := range 8 {
		asks = append(asks, agent.BatchCall{Tool: "s__set", Input: tool.Args{"key": fmt.Sprint(i), "value": "x"}})
	}
	for _, out := range tx.InvokeAll(t.Context(), asks) {
		require.Equal(t, tool.StatusDone, out.Status, out.Text)
	}
	for i := range 8 {
		require.Contains(t, h.get("store.json"), fmt.Sprintf(`"%d"`, i))
	}
	_, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, "(none)", h.get("store.json"))
}

// TestBoxLibrary: reads of a server in the sandbox see its copy of the root as it is, and one that writes fails and leaves nothing.
func TestBoxLibrary(t *testing.T) {
	h := newGatewaySetup(t)
	file := filepath.Join(h.dir, "written.txt")
	entry := strings.Replace(h.server("librarian", map[string]string{"WRITTEN": file}), `"command"`, `"cwd":"`+h.dir+`","command"`, 1)
	h.open(map[string]string{"s": entry}, sandboxedProcess)
	out := h.call("s__mcp__read", tool.Args{"uri": "book://one"})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Contains(t, out.Text, "<all> of book://one")
	out = h.call("s__mcp__prompt", tool.Args{"name": "sum up", "arguments": tool.Args{"book": "b", "lines": "2"}})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Equal(t, "Sum b up in 2 lines.", out.Text)
	h.put("note.txt", "from outside")
	out = h.call("s__mcp__read", tool.Args{"uri": "book://written"})
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Contains(t, out.Text, "is said to only read, and changed 1 files")
	require.Equal(t, "(none)", h.get("written.txt"))
	require.Equal(t, "from outside", h.call("s__mcp__read", tool.Args{"uri": "file://note.txt"}).Text)
}
