package grant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/grant"
	"github.com/remit-dev/remit/perm"
)

const file = "file://workspace/a"

func setOf(t *testing.T, accesses ...perm.ResourceAccess) perm.Set {
	s, err := perm.NewSet(accesses...)
	require.NoError(t, err)
	return s
}

// TestInvalidGrants checks that the zero grant, and a grant made without a
// clock, hold nothing.
func TestInvalidGrants(t *testing.T) {
	all := grant.Config{ID: "s", Set: setOf(t, perm.Access(perm.Write, file)), Now: time.Now}
	require.True(t, grant.New(all).Allows(perm.Access(perm.Write, file)), "the control")
	clockless := all
	clockless.Now = nil
	for name, g := range map[string]grant.Grant{
		"zero": {}, "without a clock": grant.New(clockless),
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, g.Allows(perm.Access(perm.Write, file)))
			require.True(t, g.Set().IsEmpty())
			require.Empty(t, g.ID())
			require.ErrorIs(t, g.Check(t.Context()), callstate.ErrDenied)
			_, err := g.Use(t.Context())
			require.ErrorIs(t, err, callstate.ErrDenied)
			g.Revoke("nothing happens")
		})
	}
}

// TestGrantEndsWithParent checks that a delegated grant holds no more
// than its parents, and not for longer.
func TestGrantEndsWithParent(t *testing.T) {
	now := time.Unix(1000, 0)
	build := func(c grant.Config) grant.Grant {
		c.Now = func() time.Time { return now }
		return grant.New(c)
	}
	both := setOf(t, perm.Access(perm.Read, file), perm.Access(perm.Write, file))
	for name, test := range map[string]struct {
		above, below grant.Config
		end          func(above, below grant.Grant)
		says         string
	}{
		"expired above": {grant.Config{Expires: now.Add(time.Second)}, grant.Config{}, func(grant.Grant, grant.Grant) { now = now.Add(time.Second) }, "expired"},
		"revoked above": {grant.Config{}, grant.Config{}, func(a, _ grant.Grant) { a.Revoke("by me") }, "was revoked by me"},
		"used above": {grant.Config{Uses: 2, Used: 1}, grant.Config{Uses: 9}, func(a, _ grant.Grant) {
			_, err := a.Use(t.Context())
			require.NoError(t, err)
		}, "is used up: it was for 2 calls"},
		"cannot be told": {grant.Config{CheckRevoked: func(context.Context, string) (bool, string, error) { return false, "", errors.New("no disk") }}, grant.Config{}, func(grant.Grant, grant.Grant) {}, "cannot be told: no disk"},
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
			require.ErrorIs(t, err, callstate.ErrDenied)
			require.ErrorContains(t, err, test.says)
		})
	}
	g := build(grant.Config{ID: "s", Set: both})
	require.Equal(t, "s", g.ID())
	require.NoError(t, g.Check(t.Context()))
}
