package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

func TestRun(t *testing.T) {
	world := &settings{values: map[string]string{"lamp": "off"}}
	require.NoError(t, run(t.Context(), world))
	require.Equal(t, map[string]string{"lamp": "off"}, world.values)
}

// switchTwice commits a transaction that set the lamp twice.
func switchTwice(t *testing.T, rt *agent.Runtime) (*agent.Session, string) {
	t.Helper()
	s, err := rt.Session(t.Context(), perm.Principal{ID: "housekeeper"})
	require.NoError(t, err)
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		for _, to := range []string{"on", "dim"} {
			if _, err := tx.Invoke(t.Context(), "setting_set", tool.Args{"name": "lamp", "value": to}); err != nil {
				return err
			}
		}
		_, err := tx.Invoke(t.Context(), "setting_set", tool.Args{"name": "heating", "value": "on"})
		require.ErrorIs(t, err, tool.ErrDenied)
		return nil
	})
	require.NoError(t, err)
	return s, id
}

// TestHandleContract checks that a denied call changes nothing, that a
// revert restores and a redo repeats the change, that another actor's change
// stays, and that another process needs only the journal.
func TestHandleContract(t *testing.T) {
	world := &settings{values: map[string]string{}}
	journal := journal.Memory()
	rt, err := newRuntime(world, journal)
	require.NoError(t, err)
	s, id := switchTwice(t, rt)
	require.Equal(t, map[string]string{"lamp": "dim"}, world.values)

	report, err := s.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err)
	require.True(t, report.Complete())
	require.Empty(t, world.values, "it was not there before")

	_, id = switchTwice(t, rt)
	require.NoError(t, rt.Close())
	later, err := newRuntime(world, journal) // like a later process
	require.NoError(t, err)
	world.values["lamp"] = "red" // by another actor
	report, err = later.Revert(t.Context(), id, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.NotEmpty(t, report.NotReverted())
	require.Equal(t, map[string]string{"lamp": "red"}, world.values)
	require.NoError(t, later.Close())
}

// TestStepsAreSwaps checks that a step whose version is gone does nothing.
func TestStepsAreSwaps(t *testing.T) {
	world := &settings{values: map[string]string{"lamp": "dim"}}
	steps, _, err := scheme{world}.Plan(context.Background(), []effect.Change{
		{N: 1, Resource: prefix + "lamp", Pre: effect.Absent, Post: value{"on", true}.token(), Inverse: []byte(`{"was":{"set":false}}`)},
		{N: 2, Resource: prefix + "lamp", Pre: value{"on", true}.token(), Post: value{"dim", true}.token(), Inverse: []byte(`{}`)},
	}, nil)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	require.Equal(t, []int{1, 2}, steps[0].Of)
	require.Equal(t, effect.Restored, steps[0].Plan)
	world.values["lamp"] = "red"
	res := scheme{world}.Apply(context.Background(), steps[0], nil)
	require.Equal(t, effect.Conflict, res.Outcome)
	require.Equal(t, "red", world.values["lamp"])
}
