package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	ctxfiles "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

const allowsAll = "package remit\nallow contains \"everything\" if true\n"

// flowing is the flow policy beside one that allows everything.
func flowing(t *testing.T) perm.Engine {
	e, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{
		{FS: fstest.MapFS{"all.rego": {Data: []byte(allowsAll)}}},
		{FS: policies.Flow(), Prefix: policies.Prefix},
	}})
	require.NoError(t, err)
	return e
}

// messenger reads what others wrote, and sends to whom a model names.
func messenger(t *testing.T) []tool.Tool {
	fetch, err := tool.FromSpec(tool.Spec{
		Name: "fetch", Description: "Reads what others wrote.", Tags: []string{"untrusted"}, EffectClass: effect.Pure, Destination: tool.NoDestination,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("news"), nil
		},
	})
	fetch = mustTool(t, fetch, err)
	send, err := tool.Create("send", "Sends.", func(context.Context, string) (string, error) { return "sent", nil }, tool.Pure())
	return []tool.Tool{fetch, mustTool(t, send, err)}
}

func TestNothingPrivateLeavesAfterUntrustedContent(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	rt := newRuntime(t, agent.Tools(messenger(t)...), agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(flowing(t)))
	s := newSession(t, rt)
	must := func(tx *agent.Txn, name string, in any) {
		t.Helper()
		_, err := tx.Invoke(ctx, name, in)
		require.NoError(t, err)
	}
	tx := begin(t, s)
	must(tx, "send", "hello")
	must(tx, "file_write", tool.Args{"path": "a.txt", "content": "mine"})
	must(tx, "file_read", tool.Args{"path": "a.txt"})
	must(tx, "send", "still fine")
	must(tx, "fetch", "")
	_, err := tx.Invoke(ctx, "send", "too late")
	require.ErrorIs(t, err, tool.ErrDenied)
	other := begin(t, s)
	_, err = other.Invoke(ctx, "send", "from another transaction")
	require.ErrorIs(t, err, tool.ErrDenied, "labels are the session's")
	must(begin(t, newSession(t, rt)), "send", "another session")
}

func TestADeniedCallEarnsNoLabel(t *testing.T) {
	ctx := context.Background()
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
label contains "seen" if input.call.args == "look"
deny contains "not yet" if input.call.args == "look"
deny contains "it has seen" if "seen" in input.session.labels
allow contains "the rest" if true`}})
	rt := newRuntime(t, agent.Tools(messenger(t)...), agent.Policy(e))
	tx := begin(t, newSession(t, rt))
	_, err := tx.Invoke(ctx, "send", "look")
	require.ErrorIs(t, err, tool.ErrDenied)
	_, err = tx.Invoke(ctx, "send", "other")
	require.NoError(t, err)
}

// TestLabelOfADynamicAccess shows that what a call reads while it runs counts
// from the very next access on, inside the same call.
func TestLabelOfADynamicAccess(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	peek, err := tool.CreateWith("peek", "Reads one file and then another.",
		[]perm.ResourceAccess{{Action: perm.Read, Resource: "file://workspace/**"}},
		func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			f, err := ctxfiles.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			_, first := f.ReadFile(ctx, "a")
			_, second := f.ReadFile(ctx, "b")
			if errors.Is(first, tool.ErrDenied) {
				return "", errors.New("the first must not be denied")
			}
			return "", second
		}, tool.Pure())
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
label contains "seen" if { input.access.action == "read"; input.access.resource.name == "a" }
deny contains "it has seen" if { "seen" in input.session.labels; input.access.resource.name == "b" }
allow contains "the rest" if true`}})
	rt := newRuntime(t, agent.Tools(mustTool(t, peek, err)), agent.Root("workspace", dir), agent.Policy(e))
	_, err = begin(t, newSession(t, rt)).Invoke(ctx, "peek", "x")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, "it has seen")
}

// TestLabelsSurviveTheProcess leaves a call waiting, and finds its session's
// labels again in another life.
func TestLabelsSurviveTheProcess(t *testing.T) {
	ctx, state := context.Background(), filepath.Join(t.TempDir(), "state")
	var txn string
	for life := range 2 {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		rt, err := agent.New(quiet(), agent.Tools(messenger(t)...), agent.Policy(mustLoad(t, rego.Options{
			Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
label contains "seen" if input.tool.name == "fetch"
deny contains "it has seen" if { "seen" in input.session.labels; input.tool.name == "send" }
allow contains "the rest" if true`},
		})), agent.Journal(j))
		require.NoError(t, err)
		if life == 0 {
			tx := begin(t, newSession(t, rt))
			txn = tx.ID()
			_, err = tx.Invoke(ctx, "fetch", "")
			require.NoError(t, err)
		} else {
			tx, err := rt.ResumeTxn(ctx, txn)
			require.NoError(t, err)
			_, err = tx.Invoke(ctx, "send", "x")
			require.ErrorIs(t, err, tool.ErrDenied)
		}
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
	}
}

// TestALabelThatCannotBeKeptRefuses lets the journal fail exactly when a label
// is written.
func TestALabelThatCannotBeKeptRefuses(t *testing.T) {
	ctx := context.Background()
	j := &labelless{Journal: journal.Memory()}
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
label contains "seen" if input.tool.name == "fetch"
allow contains "the rest" if true`}})
	rt := newRuntime(t, agent.Tools(messenger(t)...), agent.Policy(e), agent.Journal(j))
	tx := begin(t, newSession(t, rt))
	_, err := tx.Invoke(ctx, "fetch", "")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, "could not be written down")
	_, err = tx.Invoke(ctx, "send", "x")
	require.NoError(t, err)
}

type labelless struct{ journal.Journal }

func (j *labelless) Append(ctx context.Context, b journal.Batch) error {
	for _, e := range b.Entries {
		if e.Header.Kind == record.KindLabelled {
			return errors.New("the disk is full")
		}
	}
	return j.Journal.Append(ctx, b)
}
