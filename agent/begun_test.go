package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// watchedJournal notes which kinds were there at the newest barrier.
type watchedJournal struct {
	journal.Journal
	mu            sync.Mutex
	some, durable []record.Kind
}

func (j *watchedJournal) Append(ctx context.Context, b journal.Batch) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range b.Entries {
		j.some = append(j.some, e.Header.Kind)
	}
	if b.Durable {
		j.durable = append([]record.Kind{}, j.some...)
	}
	return j.Journal.Append(ctx, b)
}

func (j *watchedJournal) lasting() []record.Kind {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.durable
}

// TestBegun checks that the journal does not contain a running call that only
// reads. After a caller calls keep, the journal holds the call durably.
func TestBegun(t *testing.T) {
	j := &watchedJournal{Journal: journal.Memory()}
	var keep func(context.Context) error
	var note func(context.Context, string, any) error
	var call string
	plain, err := tool.Create("plain", "", func(context.Context, string) (string, error) { return "read", nil }, tool.Pure())
	require.NoError(t, err)
	spec := plain.Spec()
	spec.Name = "reads"
	spec.Execute = func(ctx context.Context, tc ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
		if call != tc.Call().ID {
			t.Errorf("told of call %q", call)
		}
		_, _, err := revert.LoadCall(ctx, j, call)
		if err == nil {
			t.Error("it is on the journal before anybody wanted that")
		}
		if err := keep(ctx); err != nil {
			return tool.Result{}, err
		}
		_, c, err := revert.LoadCall(ctx, j, call)
		if err == nil && c.Phase != revert.PhaseStarted {
			t.Errorf("it is %s", c.Phase)
		}
		return tool.Text("read"), errors.Join(err, note(ctx, "seen", 1))
	}
	reads, err := tool.FromSpec(spec)
	require.NoError(t, err)
	var atBarrier []record.Kind
	listen := agent.OnStart(func(id string, k func(context.Context) error, n func(context.Context, string, any) error) {
		call, note = id, n
		keep = func(ctx context.Context) error {
			err := k(ctx)
			atBarrier = j.lasting()
			return err
		}
	})
	rt, err := agent.New(agent.Tools(plain, reads), agent.Journal(j))
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Close()) }()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	out, err := s.Call(t.Context(), "reads", json.RawMessage(`"x"`), listen)
	require.NoError(t, err)
	require.Equal(t, call, out.Call)
	require.Contains(t, atBarrier, record.KindStarted, "it is there for good")
	require.Error(t, keep(t.Context()), "the code has ended")
	require.Error(t, note(t.Context(), "late", 1))
	_, c, err := revert.LoadCall(t.Context(), j, call)
	require.NoError(t, err)
	require.Equal(t, map[string]json.RawMessage{"seen": json.RawMessage("1")}, c.Notes)

	_, err = s.Call(t.Context(), "plain", json.RawMessage(`"x"`), agent.OnStart(func(string, func(context.Context) error, func(context.Context, string, any) error) { panic("listener") }))
	require.NoError(t, err, "a listener that panics is no reason to fail")
}
