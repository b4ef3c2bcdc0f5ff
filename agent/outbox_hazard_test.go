package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// ending is how a tool's code comes to its end, or does not until it is released.
type ending func(ctx context.Context, release chan struct{}) error

// TestReleaseHazards checks that a commit stops at a released call that fails,
// and releases no later call. The next commit repeats the failed call only if
// it is known to have had no effect.
func TestReleaseHazards(t *testing.T) {
	boom := errors.New("boom")
	absent := func(context.Context, verify.Subject) verify.Verdict { return verify.Absent() }
	ends := func(err error) ending { return func(context.Context, chan struct{}) error { return err } }
	for name, tt := range map[string]struct {
		run    ending
		verify verify.Verifier
		want   tool.Status
		err    error
		again  bool
	}{
		"error":           {ends(boom), nil, tool.StatusUnknown, tool.ErrUnknown, false},
		"panic":           {func(context.Context, chan struct{}) error { panic("boom") }, nil, tool.StatusUnknown, tool.ErrUnknown, false},
		"out of time":     {func(ctx context.Context, _ chan struct{}) error { <-ctx.Done(); return context.Cause(ctx) }, nil, tool.StatusUnknown, tool.ErrUnknown, false},
		"ignores time":    {func(_ context.Context, release chan struct{}) error { <-release; return nil }, nil, tool.StatusUnknown, tool.ErrUnknown, false},
		"no effect":       {ends(tool.NoEffect(boom)), nil, tool.StatusFailed, tool.ErrFailed, true},
		"blocked":         {ends(tool.Blocked("not today")), nil, tool.StatusDenied, tool.ErrDenied, true},
		"seen not to be":  {ends(boom), absent, tool.StatusFailed, tool.ErrFailed, true},
		"does not verify": {ends(nil), absent, tool.StatusVerifyFailed, tool.ErrVerifyFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int32
				release := make(chan struct{})
				defer close(release)
				p := &post{}
				bad := p.mail(t, func(s *tool.Spec) {
					s.Name, s.Verify = "bad", tt.verify
					s.Hints.Timeout = time.Minute
					s.Execute = func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
						runs.Add(1)
						return tool.Text("sent"), tt.run(ctx, release)
					}
				})
				rt := newRuntime(t, agent.Tools(bad, p.mail(t)), agent.Policy(holdAll()))
				tx := begin(t, newSession(t, rt))
				holds(t, tx, "bad", "x")
				holds(t, tx, "mail", "after")
				err := tx.Commit(t.Context())
				require.ErrorIs(t, err, agent.ErrNotReleased)
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.want, tx.Released()[0].Status)
				require.Empty(t, p.got)
				err = tx.Commit(t.Context())
				if tt.again {
					require.ErrorIs(t, err, tt.err)
					require.EqualValues(t, 2, runs.Load())
					require.Empty(t, p.got)
					_, err = tx.Revert(t.Context(), revert.Options{Calls: []string{tx.Released()[0].Call}})
					require.NoError(t, err)
					err = tx.Commit(t.Context())
				} else {
					require.EqualValues(t, 1, runs.Load())
				}
				require.NoError(t, err)
				require.Equal(t, []string{"after"}, p.texts())
				fsckClean(t, rt)
			})
		})
	}
}
