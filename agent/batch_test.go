package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// even lets the calls at even places of a batch through.
func even() perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Deny
		if r.Call.Batch.Index%2 == 0 && r.Call.Batch.Count == 5 {
			effect = perm.Allow
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "its place"}}}), nil
	})
}

func TestBatchHasIndependentVerdicts(t *testing.T) {
	dir := t.TempDir()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(even()))
	tx := begin(t, newSession(t, rt))
	var batch []agent.BatchCall
	for i := range 5 {
		batch = append(batch, agent.BatchCall{Tool: "file_write", Input: tool.Args{"path": fmt.Sprintf("%d.txt", i), "content": "x"}})
	}
	batch[4].Tool = "file_wirte"

	outcomes := tx.InvokeAll(context.Background(), batch)

	want := []tool.Status{tool.StatusDone, tool.StatusDenied, tool.StatusDone, tool.StatusDenied, tool.StatusInvalid}
	require.Len(t, outcomes, len(want))
	ids := map[string]bool{}
	for i, o := range outcomes {
		require.Equal(t, want[i], o.Status, "call %d", i)
		require.Equal(t, want[i].OK(), o.Err() == nil)
		require.Equal(t, batch[i].Tool, o.Tool)
		ids[o.Call] = true
	}
	require.Len(t, ids, 5, "each call has an id of its own")
	for i := range 5 {
		_, err := os.Stat(filepath.Join(dir, fmt.Sprintf("%d.txt", i)))
		require.Equal(t, want[i].OK(), err == nil, "file %d", i)
	}
	require.Empty(t, tx.InvokeAll(context.Background(), nil))
}

func TestBatchRunsAtOnce(t *testing.T) {
	const n = 8
	var here atomic.Int32
	all := make(chan struct{})
	meet, err := tool.Create("meet", "Waits until all have come.", func(ctx context.Context, in string) (string, error) {
		if here.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
			return in, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}, tool.Pure())
	rt := newRuntime(t, agent.Tools(mustTool(t, meet, err)), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	batch := make([]agent.BatchCall, n)
	for i := range batch {
		batch[i] = agent.BatchCall{Tool: "meet", Input: fmt.Sprint(i)}
	}
	for i, o := range tx.InvokeAll(context.Background(), batch) {
		require.NoError(t, o.Err(), "a call that waits for the others ends only where all run at once")
		require.Equal(t, fmt.Sprint(i), o.Result.Text)
	}
}

func TestBatchOutlivesAPanicAndEndsWithItsCaller(t *testing.T) {
	ctx, give := context.WithCancel(context.Background())
	wild, err := tool.Create("wild", "Panics, waits or answers.", func(ctx context.Context, in string) (string, error) {
		switch in {
		case "panic":
			panic("on purpose")
		case "wait":
			give()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return in, nil
	}, tool.Pure())
	rt := newRuntime(t, agent.Tools(mustTool(t, wild, err)), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	outcomes := tx.InvokeAll(context.Background(), []agent.BatchCall{{Tool: "wild", Input: "panic"}, {Tool: "wild", Input: "fine"}})
	require.Error(t, outcomes[0].Err())
	require.NoError(t, outcomes[1].Err())

	outcomes = tx.InvokeAll(ctx, []agent.BatchCall{{Tool: "wild", Input: "wait"}})
	require.ErrorIs(t, outcomes[0].Err(), tool.ErrCancelled)
	require.NoError(t, tx.Commit(context.Background()))
	outcomes = tx.InvokeAll(context.Background(), []agent.BatchCall{{Tool: "wild", Input: "late"}, {Tool: "wild", Input: "late"}})
	for _, o := range outcomes {
		require.ErrorIs(t, o.Err(), tool.ErrInvalid, "the transaction has ended")
	}
}
