package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

const (
	keepsAll = `"undo": {"snapshot": ["file://workspace/**"]}`
	observed = `{"d": {"tools": {"act": {"draft": true, "effectClass": "%s", ` + keepsAll + `}, "look": {"draft": true, "effectClass": "pure", ` + keepsAll + `}}}}`
)

// revert reverts the transaction of a call that committed.
func (h *gatewaySetup) revert(out tool.Outcome) revert.Report {
	h.t.Helper()
	rep, err := h.rt.Revert(h.t.Context(), out.Txn, revert.Options{})
	require.Error(h.t, err, "not everything was reverted")
	return rep
}

// TestObservedCalls: a server outside the sandbox can act anywhere. A revert of its call restores the files of the roots, says that the rest is
// unknown, and is not complete; a draft that calls it reversible changes nothing of that.
func TestObservedCalls(t *testing.T) {
	for _, class := range []string{"pivot", "reversible"} {
		t.Run(class, func(t *testing.T) {
			h := disk(t, fmt.Sprintf(observed, class))
			was := h.furnish()
			elsewhere := filepath.Join(filepath.Dir(h.dir), "elsewhere")
			tools := h.gateway.Tools()
			spec := tools[slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name() == "d__act" })].Spec()
			require.Equal(t, effect.Observed, spec.Coverage)
			require.Equal(t, effect.Pivot, spec.EffectClass)
			out := h.call("d__act", do("", diskStep{"write", "top.txt", "mine"}, diskStep{"write", "../elsewhere", "x"}))
			require.Equal(t, tool.StatusDone, out.Status)
			require.Len(t, out.Changes, 1)

			preview, err := h.rt.Preview(t.Context(), out.Txn, revert.Options{})
			require.NoError(t, err)
			require.False(t, preview.Complete())
			rep := h.revert(out)
			require.False(t, rep.Complete())
			require.Equal(t, revert.TxnRevertedPartial, rep.State)
			require.Equal(t, []string{"tool://d__act: the call was not confined to workspace: its effects elsewhere, or on masked files there, are unknown"}, unknownElsewhere(rep))
			require.Equal(t, unknownElsewhere(preview), unknownElsewhere(rep))
			require.Equal(t, was, h.looks())
			require.FileExists(t, elsewhere, "nothing here knows of it")
			require.Len(t, unknownElsewhere(h.revert(out)), 1, "a second revert knows no more")
		})
	}
}

// TestObservedReads: a tool that says that it only reads runs, and is found out where it changes files. They stay, since somebody else may
// have changed them meanwhile, and a revert restores them.
func TestObservedReads(t *testing.T) {
	h := disk(t, fmt.Sprintf(observed, "pivot"))
	was := h.furnish()
	out := h.call("d__look", do(""))
	require.Equal(t, tool.StatusDone, out.Status)
	require.Empty(t, out.Changes)
	require.Contains(t, unknownElsewhere(h.revert(out))[0], "its tool declares that it only reads; ")
	require.NotContains(t, h.log.String(), "only reads")

	out = h.call("d__look", do("", diskStep{"write", "top.txt", "mine"}, diskStep{"mkdir", "new", ""}))
	require.Equal(t, tool.StatusDone, out.Status)
	require.Len(t, out.Changes, 2)
	require.Equal(t, "mine", h.get("top.txt"))
	require.Contains(t, h.log.String(), "says that it only reads")
	require.Contains(t, h.log.String(), "file://workspace/top.txt")
	require.Contains(t, unknownElsewhere(h.revert(out))[0], "files were changed during the call")
	require.Equal(t, was, h.looks())

	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__look", do("", diskStep{"write", "top.txt", "mine"}, diskStep{"fail", "", ""}))
	require.Error(t, err)
	require.Equal(t, tool.StatusUnknown, out.Status, "it says that it failed, and that it only reads")
	require.Equal(t, "mine", h.get("top.txt"), "what may be somebody else's is not reverted unasked")
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.Error(t, err)
	require.Len(t, unknownElsewhere(rep), 1)
	require.Equal(t, was, h.looks())

	out = h.call("d__look", do("", diskStep{"fail", "", ""}))
	require.Equal(t, tool.StatusFailed, out.Status)
}

// TestObservedCallsThatFail: in the roots a failed call leaves nothing, and its outcome is unknown all the same.
func TestObservedCallsThatFail(t *testing.T) {
	h := disk(t, fmt.Sprintf(observed, "pivot"))
	was := h.furnish()
	out := h.call("d__act", do("", diskStep{"write", "top.txt", "mine"}, diskStep{"fail", "", ""}))
	require.Equal(t, tool.StatusUnknown, out.Status)
	require.Equal(t, was, h.looks())
	require.Contains(t, out.Error.Fix, "remit took back the changes that it saw")

	out = h.call("d__act", do("", diskStep{"fail", "", ""}))
	require.Equal(t, tool.StatusUnknown, out.Status, "it may have changed something elsewhere")
	require.Contains(t, out.Error.Fix, "neither repeated nor undone", "remit saw no change")

	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__act", do("", diskStep{"write", "top.txt", "mine"}, diskStep{"exit", "", ""}))
	require.Error(t, err)
	require.Equal(t, tool.StatusUnknown, out.Status, "its server has gone")
	require.Equal(t, "mine", h.get("top.txt"))
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.Error(t, err)
	require.Len(t, unknownElsewhere(rep), 1)
	require.Equal(t, was, h.looks(), "what was found of it is reverted")
}

// TestObservedByThePolicy: the workspace policy lets a tool run that says that it only reads, and asks about every other one.
func TestObservedByThePolicy(t *testing.T) {
	h := disk(t, fmt.Sprintf(observed, "pivot"), func(h *gatewaySetup) {
		engine, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{{FS: policies.Workspace()}}})
		require.NoError(t, err)
		h.policy = engine
	})
	require.Equal(t, tool.StatusDone, h.call("d__look", do("")).Status)
	out := h.call("d__act", do("", diskStep{"write", "a.txt", "x"}))
	require.Equal(t, tool.StatusDenied, out.Status, "nobody is there to ask")
	require.Contains(t, out.Error.Why, "a person must approve it")
	require.NoFileExists(t, filepath.Join(h.dir, "a.txt"))
}

// TestMaskedOfObservedCalls: what is not known is named, as far as it is in the roots: of each file that the policy masks, whether it came or went.
func TestMaskedOfObservedCalls(t *testing.T) {
	workspace, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{{FS: policies.Workspace()}}})
	require.NoError(t, err)
	h := disk(t, fmt.Sprintf(observed, "pivot"), func(h *gatewaySetup) {
		h.policy = perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) { // as if a person approved
			d, err := workspace.Decide(ctx, r)
			if d.Effect() == perm.Ask {
				d = perm.NewDecision(perm.Allow, d.Details())
			}
			return d, err
		})
	})
	h.furnish()
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, "a/.git/hooks"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, "c/.git"), 0o755))
	h.put(".env", "secret")
	out := h.call("d__act", do("", diskStep{"write", "top.txt", "mine"}, diskStep{"write", "a/b/.env", "x"}, diskStep{"remove", ".env", ""}, diskStep{"write", "a/.git/x", "x"}))
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Equal(t, []string{"tool://d__act: the call was not confined to workspace: its effects elsewhere, or on files there that the policy masks " +
		"(workspace/c/.git, workspace/a/.git (changed), workspace/a/b/.env (new), workspace/.env (gone)), are unknown"}, unknownElsewhere(h.revert(out)))
	require.Equal(t, "top", h.get("top.txt"))

	out = h.call("d__look", do(""))
	require.Contains(t, unknownElsewhere(h.revert(out))[0], "or on masked files there, are unknown", "nothing has changed: nothing is listed")

	var many []diskStep
	for i := range 12 {
		many = append(many, diskStep{"mkdir", fmt.Sprint("m", i), ""}, diskStep{"write", fmt.Sprint("m", i, "/.env"), "x"})
	}
	out = h.call("d__act", do("", many...))
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Contains(t, unknownElsewhere(h.revert(out))[0], "workspace/m4/.env (new), workspace/m5/.env (new), 7 more), are unknown", "what came is listed before what was there")
}

// TestSnapshotsThatAPersonVouchesFor: an entry that a person wrote can say that nothing else happens, and then that is declared; without the
// word it is observed. Nobody can say it of what is drafted.
func TestSnapshotsThatAPersonVouchesFor(t *testing.T) {
	for entry, want := range map[string]effect.Coverage{
		`{` + keepsAll + `}`:                                             effect.Observed,
		`{"effectClass": "pivot", ` + keepsAll + `}`:                     effect.Observed,
		`{"undo": {"snapshot": ["file://workspace/a.txt"]}}`:             effect.Observed,
		`{"effectClass": "reversible", ` + keepsAll + `}`:                effect.Declared,
		`{"effectClass": "reversible", "draft": true, ` + keepsAll + `}`: effect.Observed,
		`{"effectClass": "pure"}`:                                        "",
	} {
		c, err := config.Parse("gateway.json", []byte(`{"mcpServers": {"d": {"command": "x"}}, "remit": {"servers": {"d": {"tools": {"act": `+entry+`}}}}}`), os.LookupEnv)
		require.NoError(t, err, entry)
		e := c.Servers[0].Tools["act"]
		require.Equal(t, want == effect.Observed, e.Observed, entry)
	}
}
