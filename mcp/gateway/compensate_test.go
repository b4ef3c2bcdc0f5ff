package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// mapped says of the server with a memory how each of its writes is reverted: what is new is dropped again, what was
// there before is set again.
const mapped = `{
	"get": {"effectClass": "pure"},
	"set": {"errors": "no_effect", "undo": {"compensate": {"tool": "drop-key", "args": {"key": {"$from": "/input/key"}}}},
		"verify": {"tool": "get", "args": {"key": {"$from": "/input/key"}}, "applied": "/structuredContent/value", "equals": {"$from": "/input/value"}}},
	"drop-key": {"errors": "no_effect", "before": {"tool": "get", "args": {"key": {"$from": "/input/key"}}},
		"undo": {"compensate": {"tool": "set", "args": {"key": {"$from": "/input/key"}, "value": {"$from": "/before/structuredContent/value"}}}, "repeatable": true}},
	"half": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/store.json"]}}
}`

// TestCompensate: a call is reverted by another tool of its server, with arguments out of what it was given and of what
// was there before; alone, and after it has committed.
func TestCompensate(t *testing.T) {
	h := newGatewaySetup(t)
	h.put("store.json", `{
 "a": "1"
}`)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": `+mapped+`}}`)
	s := h.session()
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		for _, c := range []agent.BatchCall{
			{Tool: "s__set", Input: tool.Args{"key": "b", "value": "2"}},
			{Tool: "s__drop_key", Input: tool.Args{"key": "a"}},
		} {
			if _, err := tx.Invoke(t.Context(), c.Tool, c.Input); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"b":"2"}`, h.get("store.json"))
	rep, err := s.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, "{\n \"a\": \"1\"\n}", h.get("store.json"))
}

// TestCompensateThatFails: an undo that the server refuses is not shown as one.
func TestCompensateThatFails(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": `+strings.Replace(mapped, `"verify"`, `"timeout": "1m", "verify"`, 1)+`}}`)
	s := h.session()
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		_, err := tx.Invoke(t.Context(), "s__set", tool.Args{"key": "b", "value": "2"})
		return err
	})
	require.NoError(t, err)
	h.put("store.json", `{}`)
	rep, err := s.Revert(t.Context(), id, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Contains(t, fmt.Sprint(rep.NotReverted()), "there is no b")
}

// TestCompensateOnce: an undo that was sent and not answered is not sent again, by whatever process, unless that does no harm.
func TestCompensateOnce(t *testing.T) {
	for again, want := range map[string]string{"": "x", `, "repeatable": true`: "xx"} {
		h := newGatewaySetup(t)
		h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"set": {"undo": {"compensate": {"tool": "fatal"}`+again+`}}}}}`)
		s := h.session()
		id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
			_, err := tx.Invoke(t.Context(), "s__set", tool.Args{"key": "b", "value": "2"})
			return err
		})
		require.NoError(t, err)
		for range 2 {
			_, err = h.rt.Revert(t.Context(), id, revert.Options{})
			require.ErrorIs(t, err, agent.ErrPartialRevert)
			require.NoError(t, h.gateway.Close())
			require.NoError(t, h.rt.Close())
			h.begin()
		}
		require.Equal(t, want, h.get("store.json.count"))
	}
}

// TestVerify: what a call wrote is looked at by another tool of the server, and one that did nothing does not pass.
func TestVerify(t *testing.T) {
	h := newGatewaySetup(t)
	h.open(map[string]string{"s": h.server("store", nil)}, `{"s": {"tools": {"get": {"effectClass": "pure"},
		"set": {"effectClass": "pivot", "verify": {"tool": "get", "args": {"key": "other"}, "applied": "/structuredContent/value"}}}}}`)
	h.put("store.json", `{"other": ""}`)
	require.Equal(t, tool.StatusVerifyFailed, h.call("s__set", tool.Args{"key": "b", "value": "2"}).Status)
	h.put("store.json", `{"other": "x"}`)
	out := h.call("s__set", tool.Args{"key": "b", "value": "2"})
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.EqualValues(t, "applied", out.Verdict.Presence)
}

// TestSnapshot: what a file held before the server got to change it is there again, after a call that failed half-way, and
// after one that was done; what somebody wrote since stays.
func TestSnapshot(t *testing.T) {
	h := newGatewaySetup(t)
	known := `{"s": {"tools": {"half": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/store.json"]}},
		"set": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/store.json"]}}}}}`
	h.open(map[string]string{"s": h.server("store", nil)}, known)
	out := h.call("s__half", tool.Args{})
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Equal(t, "(none)", h.get("store.json"))

	h.put("store.json", `{"a":"1"}`)
	s := h.session()
	change := func() string {
		id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
			out, err := tx.Invoke(t.Context(), "s__set", tool.Args{"key": "b", "value": "2"})
			require.Len(t, out.Changes, 1, "%+v", out)
			return err
		})
		require.NoError(t, err)
		return id
	}
	id := change()
	require.JSONEq(t, `{"a":"1","b":"2"}`, h.get("store.json"))
	_, err := s.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, `{"a":"1"}`, h.get("store.json"))
	_, err = s.Redo(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"1","b":"2"}`, h.get("store.json"))

	h.put("store.json", `{"a":"1"}`)
	id = change()
	h.put("store.json", `{"mine":"x"}`)
	_, err = s.Revert(t.Context(), id, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Equal(t, `{"mine":"x"}`, h.get("store.json"))
}

// serveKilled is the process of TestKill: calls of two servers and of a tool of remit in one transaction, and death.
func serveKilled() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	j, err := sqlite.Open(ctx, filepath.Join(os.Getenv("STATE"), "journal"))
	must(err)
	c, err := config.Parse("gateway.json", []byte(os.Getenv("CONFIG")), os.LookupEnv)
	must(err)
	g, err := gateway.Open(ctx, c, gateway.Options{State: os.Getenv("STATE"), Roots: map[string]string{"workspace": os.Getenv("DIR")}})
	must(err)
	g.Start()
	g.Await(ctx)
	rt, err := agent.New(agent.Tools(builtin.Files()...), agent.Tools(g.Tools()...), agent.Root("workspace", os.Getenv("DIR")), agent.Journal(j),
		agent.Policy(perm.EngineFunc((&gatewaySetup{}).decide)), agent.Log(slog.New(slog.DiscardHandler)))
	must(err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	must(err)
	tx, err := s.Begin(ctx)
	must(err)
	for _, c := range []agent.BatchCall{
		{Tool: "s__set", Input: tool.Args{"key": "b", "value": "2"}},
		{Tool: "file_write", Input: tool.Args{"path": "c.txt", "content": "new"}},
		{Tool: "two__drop_key", Input: tool.Args{"key": "a"}},
		{Tool: "s__half", Input: tool.Args{}},
		{Tool: "s__set", Input: tool.Args{"key": "d", "value": "4"}},
	} {
		out, err := tx.Invoke(ctx, c.Tool, c.Input)
		if c.Tool != "s__half" {
			must(err)
		}
		fmt.Println(tx.ID(), out.Status)
	}
	self, err := os.FindProcess(os.Getpid())
	must(err)
	must(self.Kill())
	select {}
}

// TestKill: calls of two servers and of a tool of remit are one transaction, which another process reverts after the
// first one was killed: all files are as before, byte by byte.
func TestKill(t *testing.T) {
	h := newGatewaySetup(t)
	two := filepath.Join(h.dir, "two.json")
	h.put("store.json", "{\n \"z\": \"26\"\n}")
	h.put("two.json", "{\n \"a\": \"1\"\n}")
	h.config = `{"mcpServers": {"s": ` + h.server("store", nil) + `, "two": ` + h.server("store", map[string]string{"STORE": two}) + `},
		"remit": {"servers": {"s": {"tools": ` + mapped + `}, "two": {"tools": ` + mapped + `}}}}`
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SERVER=killed", "DIR="+h.dir, "STATE="+h.state, "CONFIG="+h.config)
	out, err := cmd.Output()
	require.ErrorContains(t, err, "killed", string(out))
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 5, string(out))
	txn, _, _ := strings.Cut(lines[0], " ")
	require.Equal(t, "new", h.get("c.txt"))
	require.JSONEq(t, `{}`, h.get("two.json"))
	require.Contains(t, h.get("store.json"), `"d"`)

	j, err := sqlite.Open(t.Context(), filepath.Join(h.state, "journal"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	h.journal = j
	h.begin()
	_, err = h.rt.Recover(t.Context())
	require.NoError(t, err)
	rep, err := h.rt.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err, "%v", rep.NotReverted())
	require.EqualValues(t, "reverted", rep.State)
	require.Equal(t, "{\n \"z\": \"26\"\n}", h.get("store.json"))
	require.Equal(t, "{\n \"a\": \"1\"\n}", h.get("two.json"))
	require.Equal(t, "(none)", h.get("c.txt"))
}
