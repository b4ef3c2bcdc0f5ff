package callstate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// step is a handle that records its method calls, and fails on demand.
type step struct {
	name, fails string
	did         *[]string
}

var errStep = errors.New("it failed")

func (s step) do(what string) error {
	*s.did = append(*s.did, s.name+" "+what)
	if s.fails == what {
		return errStep
	}
	return nil
}

func (s step) Prepare(context.Context) error { return s.do("prepare") }
func (s step) Finish(context.Context) error  { return s.do("finish") }
func (s step) Abort(context.Context)         { _ = s.do("abort") }

// TestHandlesAreFinishedTogether checks that all handles are prepared before
// any is finished. If one fails, those that are not final are aborted once,
// newest first.
func TestHandlesAreFinishedTogether(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       []string
	}{
		{"all", "", "", []string{"a prepare", "b prepare", "a finish", "b finish"}},
		{"the first is not prepared", "prepare", "", []string{"a prepare", "b abort", "a abort"}},
		{"the second is not prepared", "", "prepare", []string{"a prepare", "b prepare", "b abort", "a abort"}},
		{"the first is not finished", "finish", "", []string{"a prepare", "b prepare", "a finish", "b abort"}},
		{"the second is not finished", "", "finish", []string{"a prepare", "b prepare", "a finish", "b finish"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCall(t, hosttest.New(1))
			var did []string
			require.NoError(t, c.Join(step{"a", tt.a, &did}, false))
			require.NoError(t, c.Join(step{"b", tt.b, &did}, true))
			require.ErrorIs(t, c.Join(step{"c", "", &did}, true), callstate.ErrSecondCommit)
			err := c.Prepare(t.Context())
			if err == nil {
				err = c.Finish(t.Context())
			}
			if tt.a+tt.b == "" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, errStep)
			}
			c.Abort(t.Context())
			require.Equal(t, tt.want, did)
		})
	}
}

// TestPart checks that a removed handle permits another, and is neither
// prepared nor aborted with the call. A handle that the call has aborted is not
// joined any more.
func TestPart(t *testing.T) {
	c := newCall(t, hosttest.New(1))
	var did []string
	a, b := &step{"a", "", &did}, &step{"b", "", &did}
	require.False(t, c.Part(a))
	require.NoError(t, c.Join(step{"first", "", &did}, false))
	require.NoError(t, c.Join(a, true))
	require.True(t, c.Part(a))
	require.False(t, c.Part(a))
	require.NoError(t, c.Join(b, true))
	require.ErrorIs(t, c.Join(a, true), callstate.ErrSecondCommit)
	require.NoError(t, c.Prepare(t.Context()))
	c.Abort(t.Context())
	require.Equal(t, []string{"first prepare", "b prepare", "b abort", "first abort"}, did)
	require.False(t, c.Part(b))
	require.ErrorIs(t, c.Join(a, true), callstate.ErrSecondCommit, "what was dropped had its turn")
}

// TestReenter checks that the handles of a closed call can still act, and its
// tool cannot. Close does not wait twice.
func TestReenter(t *testing.T) {
	c := newCall(t, hosttest.New(1))
	require.NoError(t, c.Close(t.Context()))
	_, err := c.Enter(t.Context())
	require.ErrorIs(t, err, callstate.ErrClosed)
	op, err := c.Reenter()
	require.NoError(t, err)
	require.NotNil(t, op.Call())
	op.Leave()
	op.Leave()
	require.NoError(t, c.Close(t.Context()))
}

// TestChangesOfAProgram checks that a separate function decides them. Its
// denial marks the call, and its approval becomes part of the call's record.
func TestChangesOfAProgram(t *testing.T) {
	write := []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/a")}
	c := newCall(t, hosttest.New(1))
	require.NoError(t, c.AuthorizeChanges(t.Context(), nil, nil, nil))
	require.ErrorIs(t, c.AuthorizeChanges(t.Context(), write, nil, nil), callstate.ErrDenied, "no gate, no change")
	require.NotNil(t, c.Refused())

	cfg := newCall(t, hosttest.New(2)).Config()
	cfg.Changes = func(_ context.Context, _ *callstate.Call, w callstate.ProposedChanges) ([]*record.Approved, error) {
		require.Equal(t, write, w.Accesses)
		require.Equal(t, "diff", w.Preview())
		require.True(t, w.Terms.Demands("preview"))
		require.False(t, w.Terms.Demands("sandbox"))
		return []*record.Approved{{Approval: record.Approval{By: "somebody"}}}, nil
	}
	cfg.Terms = callstate.Obligations{Masks: []string{"m"}, Requires: []string{"preview"}}
	c = callstate.New(cfg)
	require.NoError(t, c.AuthorizeChanges(t.Context(), write, nil, func() string { return "diff" }))
	require.Nil(t, c.Refused())
	require.Equal(t, "somebody", c.Approved()[0].By)
	require.Len(t, c.Start(), 2, "it goes with the start of the call")
	require.Equal(t, callstate.Obligations{Masks: []string{"m", "n"}, Requires: []string{"preview"}}, c.Terms().And(callstate.Obligations{Masks: []string{"n", "m"}}))
}
