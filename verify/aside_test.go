package verify_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// TestAside checks verdicts about something other than the effect. Beside a
// verifier of the effect they decide nothing in any phase, and they never make
// a revert incomplete.
func TestAside(t *testing.T) {
	spared := verify.Unchanged(func(struct{}) []string { return []string{"spared"} })
	said := verify.Output(func(struct{}, int) error { return nil })
	shape, err := verify.OutputSchema(json.RawMessage(`{"type":"integer"}`))
	require.NoError(t, err)
	quiet := textView{now: map[string]string{"spared": "1"}}
	changes := []verify.Change{{Resource: "spared", Before: "v:1", After: "v:2"}}
	look := func(v verify.Verifier, p verify.Phase, w verify.ResourceView) effect.Presence {
		s := verify.Subject{Phase: p, Input: json.RawMessage(`{}`), Resources: w, Changes: changes}
		if p == verify.AfterCall {
			s.Output = json.RawMessage(`1`)
		}
		return v(context.Background(), s).Presence()
	}
	for _, tc := range []struct {
		phase              verify.Phase
		effect             verify.Verdict
		all, alone, shaped effect.Presence
	}{
		{verify.AfterCall, verify.Applied(), effect.PresenceApplied, effect.PresenceApplied, effect.PresenceApplied},
		{verify.AfterCall, verify.Absent(), effect.PresencePartial, effect.PresenceApplied, effect.PresenceApplied}, // the output contradicts it
		{verify.Recovery, verify.Applied(), effect.PresenceApplied, effect.PresenceUnknown, effect.PresenceUnknown},
		{verify.Recovery, verify.Absent(), effect.PresenceAbsent, effect.PresenceUnknown, effect.PresenceUnknown},
		{verify.Recovery, verify.CannotTell(), effect.PresenceUnknown, effect.PresenceUnknown, effect.PresenceUnknown},
		{verify.AfterUndo, verify.Absent(), effect.PresenceAbsent, effect.PresenceAbsent, effect.PresenceUnknown},
		{verify.AfterUndo, verify.Applied(), effect.PresenceApplied, effect.PresenceAbsent, effect.PresenceUnknown},
	} {
		about := []any{tc.phase, tc.effect.Presence()}
		require.Equal(t, tc.all, look(verify.All(spared, says(tc.effect), said, shape), tc.phase, quiet), about...)
		require.Equal(t, tc.alone, look(spared, tc.phase, quiet), about...)
		require.Equal(t, tc.alone, look(verify.All(spared), tc.phase, quiet), about...)
		require.Equal(t, tc.alone, look(verify.All(verify.Any(spared), verify.All(spared)), tc.phase, quiet), about...)
		require.Equal(t, tc.shaped, look(verify.Any(said, shape), tc.phase, quiet), about...)
		changed := textView{now: map[string]string{"spared": "2"}}
		require.Equal(t, effect.PresencePartial, look(spared, tc.phase, changed), about...)
		if tc.effect.Presence() != effect.PresenceUnknown {
			require.Equal(t, effect.PresencePartial, look(verify.All(spared, says(tc.effect)), tc.phase, changed), about...)
		}
	}
}

// TestFileHasWhatItHadBefore checks that content alone cannot distinguish an
// effect from its revert if only bits changed.
func TestFileHasWhatItHadBefore(t *testing.T) {
	v := verify.FileContent(func(struct{}) (string, []byte) { return "f", []byte("same") })
	world := textView{now: map[string]string{"f": "same"}, was: map[string]string{"f": "same"}}
	for _, tc := range []struct {
		changes []verify.Change
		want    effect.Presence
	}{
		{nil, effect.PresenceApplied},
		{[]verify.Change{{Resource: "f", Before: "v:same", After: "other bits"}}, effect.PresenceAbsent},
		{[]verify.Change{{Resource: "f", Before: "other bits", After: "v:same"}}, effect.PresenceApplied},
		{[]verify.Change{{Resource: "f", Before: "v:same", After: "x"}, {Resource: "f", Before: "x", After: "v:same"}}, effect.PresenceApplied},
	} {
		got := v(context.Background(), verify.Subject{Phase: verify.AfterUndo, Input: json.RawMessage(`{}`), Resources: world, Changes: tc.changes})
		require.Equal(t, tc.want, got.Presence(), "%v", tc.changes)
	}
}
