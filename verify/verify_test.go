package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

func says(v verify.Verdict) verify.Verifier {
	return func(context.Context, verify.Subject) verify.Verdict { return v }
}

func TestZeroVerdictCannotTell(t *testing.T) {
	require.Equal(t, effect.PresenceUnknown, verify.Verdict{}.Presence())
	require.Equal(t, effect.PresenceUnknown, effect.Presence("new").OrUnknown())
	require.Equal(t, effect.PresenceUnknown, verify.Run(context.Background(), nil, verify.Subject{}).Presence())
}

func TestRunIsSafe(t *testing.T) {
	panics := func(context.Context, verify.Subject) verify.Verdict { panic("no") }
	require.Equal(t, effect.PresenceUnknown, verify.Run(context.Background(), panics, verify.Subject{}).Presence())
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, effect.PresenceUnknown, verify.Run(ended, says(verify.Applied()), verify.Subject{}).Presence(), "a verdict after its time is none")
	require.Equal(t, effect.PresenceApplied, verify.Run(context.Background(), says(verify.Applied()), verify.Subject{}).Presence())
}

func TestOutputAnswersOnlyOfItsTypes(t *testing.T) {
	v := verify.Output(func(in int, out string) error {
		if out == "" {
			return errors.New("empty")
		}
		return nil
	})
	for _, tc := range []struct {
		name    string
		in, out string
		phase   verify.Phase
		want    effect.Presence
	}{
		{"fits", `1`, `"x"`, verify.AfterCall, effect.PresenceApplied},
		{"does not hold", `1`, `""`, verify.AfterCall, effect.PresenceAbsent},
		{"input of another type", `"1"`, `"x"`, verify.AfterCall, effect.PresenceUnknown},
		{"output of another type", `1`, `2`, verify.AfterCall, effect.PresenceUnknown},
		{"after an undo", `1`, `"x"`, verify.AfterRevert, effect.PresenceUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := verify.Subject{Phase: tc.phase, Input: json.RawMessage(tc.in), Output: json.RawMessage(tc.out)}
			require.Equal(t, tc.want, v(context.Background(), s).Presence())
		})
	}
}
