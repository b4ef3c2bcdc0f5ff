package ctxperm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
)

func setOf(t *testing.T, accesses ...perm.ResourceAccess) perm.Set {
	s, err := perm.NewSet(accesses...)
	require.NoError(t, err)
	return s
}

// TestInvalidGrants checks that the zero grant, and a grant made without
// the key, hold nothing.
func TestInvalidGrants(t *testing.T) {
	all := ctxperm.GrantConfig{ID: "s", Set: setOf(t, perm.Access(perm.Write, file)), Now: time.Now}
	require.True(t, ctxperm.NewGrant(callstate.NewKey(), all).Allows(perm.Access(perm.Write, file)), "the control")
	clockless := all
	clockless.Now = nil
	for name, g := range map[string]ctxperm.Grant{
		"zero": {}, "forged": ctxperm.NewGrant(callstate.ModuleKey{}, all), "without a clock": ctxperm.NewGrant(callstate.NewKey(), clockless),
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, g.Allows(perm.Access(perm.Write, file)))
			require.True(t, g.Set().IsEmpty())
			require.Empty(t, g.ID())
			require.ErrorIs(t, g.Check(t.Context()), ctxperm.ErrDenied)
			_, err := g.Use(t.Context())
			require.ErrorIs(t, err, ctxperm.ErrDenied)
			g.Revoke(callstate.NewKey(), "nothing happens")
		})
	}
}

// TestGrantEndsWithParent checks that a delegated grant holds no more
// than its parents, and not for longer.
func TestGrantEndsWithParent(t *testing.T) {
	now := time.Unix(1000, 0)
	build := func(c ctxperm.GrantConfig) ctxperm.Grant {
		c.Now = func() time.Time { return now }
		return ctxperm.NewGrant(callstate.NewKey(), c)
	}
	both := setOf(t, perm.Access(perm.Read, file), perm.Access(perm.Write, file))
	for name, test := range map[string]struct {
		above, below ctxperm.GrantConfig
		end          func(above, below ctxperm.Grant)
		says         string
	}{
		"expired above": {ctxperm.GrantConfig{Expires: now.Add(time.Second)}, ctxperm.GrantConfig{}, func(ctxperm.Grant, ctxperm.Grant) { now = now.Add(time.Second) }, "expired"},
		"revoked above": {ctxperm.GrantConfig{}, ctxperm.GrantConfig{}, func(a, _ ctxperm.Grant) { a.Revoke(callstate.NewKey(), "by me") }, "was revoked by me"},
		"used above": {ctxperm.GrantConfig{Uses: 2, Used: 1}, ctxperm.GrantConfig{Uses: 9}, func(a, _ ctxperm.Grant) {
			_, err := a.Use(t.Context())
			require.NoError(t, err)
		}, "is used up: it was for 2 calls"},
		"cannot be told": {ctxperm.GrantConfig{CheckRevoked: func(context.Context, string) (bool, string, error) { return false, "", errors.New("no disk") }}, ctxperm.GrantConfig{}, func(ctxperm.Grant, ctxperm.Grant) {}, "cannot be told: no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			test.above.ID, test.above.Set = "s_above", setOf(t, perm.Access(perm.Read, file))
			above := build(test.above)
			test.below.ID, test.below.Set, test.below.Parent = "s_below", both, above
			below := build(test.below)
			require.True(t, below.Allows(perm.Access(perm.Read, file)))
			require.False(t, below.Allows(perm.Access(perm.Write, file)), "whatever it says it holds")
			if test.above.CheckRevoked == nil {
				back, err := below.Use(t.Context())
				require.NoError(t, err, "the control")
				back()
				back()
			}
			test.end(above, below)
			_, err := below.Use(t.Context())
			require.ErrorIs(t, err, ctxperm.ErrDenied)
			require.ErrorContains(t, err, test.says)
		})
	}
	g := build(ctxperm.GrantConfig{ID: "s", Set: both})
	require.Equal(t, "s", g.ID())
	g.Revoke(callstate.ModuleKey{}, "by a stranger")
	require.NoError(t, g.Check(t.Context()), "only this module revokes")
}

// TestInvalidToolContexts checks that the zero ToolContext, and one kept
// after its call, authorize nothing.
func TestInvalidToolContexts(t *testing.T) {
	x := begin(t, hosttest.New(1))
	c := x.call("c_1")
	kept := ctxperm.New(c)
	require.NoError(t, c.Close(t.Context()))
	for name, tc := range map[string]ctxperm.ToolContext{"zero": {}, "of no call": ctxperm.New(nil), "outlived": kept} {
		t.Run(name, func(t *testing.T) {
			_, err := ctxperm.Authorize(t.Context(), tc, perm.Access(perm.Write, file))
			require.ErrorIs(t, err, ctxperm.ErrClosed)
			require.ErrorIs(t, tc.Note(t.Context(), "k", 1), ctxperm.ErrClosed)
			require.Nil(t, tc.CallState(callstate.ModuleKey{}), "nor does a key that nobody made open it")
			tc.Progress(1, 2, "")
		})
	}
}
