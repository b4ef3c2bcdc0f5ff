package verify_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// versions is a ResourceView of versions only.
type versions map[string]string

func (w versions) Version(_ context.Context, resource string) (string, error) {
	v, ok := w[resource]
	if !ok {
		return "", errors.New("out of reach")
	}
	return v, nil
}

func (versions) Open(context.Context, string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }

func (versions) Before(context.Context, string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }

func TestChanges(t *testing.T) {
	changes := []verify.Change{
		{Resource: "a", Before: "a0", After: "a1"}, {Resource: "b", Before: "absent", After: "b1"}, {Resource: "a", Before: "a1", After: "a2"},
	}
	for _, tt := range []struct {
		name    string
		phase   verify.Phase
		changes []verify.Change
		world   verify.ResourceView
		want    effect.Presence
	}{
		{"as left", verify.AfterCall, changes, versions{"a": "a2", "b": "b1"}, effect.PresenceApplied},
		{"as before", verify.AfterRevert, changes, versions{"a": "a0", "b": "absent"}, effect.PresenceAbsent},
		{"half", verify.Recovery, changes, versions{"a": "a2", "b": "absent"}, effect.PresencePartial},
		{"a version between", verify.AfterCall, changes, versions{"a": "a1", "b": "b1"}, effect.PresencePartial},
		{"somebody else's", verify.AfterCall, changes, versions{"a": "a2", "b": "b9"}, effect.PresencePartial},
		{"changed back", verify.AfterCall, []verify.Change{{Resource: "a", Before: "a0", After: "a0"}}, versions{"a": "a0"}, effect.PresenceApplied},
		{"changed back and undone", verify.AfterRevert, []verify.Change{{Resource: "a", Before: "a0", After: "a0"}}, versions{"a": "a0"}, effect.PresenceAbsent},
		{"out of reach", verify.AfterCall, changes, versions{"a": "a2"}, effect.PresenceUnknown},
		{"no world", verify.AfterCall, changes, nil, effect.PresenceUnknown},
		{"nothing changed", verify.AfterCall, nil, nil, effect.PresenceApplied},
		{"nothing recorded", verify.Recovery, nil, nil, effect.PresenceAbsent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := verify.Subject{Phase: tt.phase, Changes: tt.changes, Resources: tt.world}
			require.Equal(t, tt.want, verify.Run(t.Context(), verify.Changes, s).Presence())
		})
	}
}
