package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/verify"
)

func says(v verify.Verdict) verify.Verifier {
	return func(context.Context, verify.Subject) verify.Verdict { return v }
}

func TestZeroVerdictCannotTell(t *testing.T) {
	require.Equal(t, verify.CannotTell, verify.Verdict{}.Is())
	require.Equal(t, "cannot_tell", verify.Is(200).String())
	require.Equal(t, verify.CannotTell, verify.Run(context.Background(), nil, verify.Subject{}).Is())
}

func TestRunIsSafe(t *testing.T) {
	panics := func(context.Context, verify.Subject) verify.Verdict { panic("no") }
	require.Equal(t, verify.CannotTell, verify.Run(context.Background(), panics, verify.Subject{}).Is())
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, verify.CannotTell, verify.Run(ended, says(verify.Applied()), verify.Subject{}).Is(), "a verdict after its time is none")
	require.Equal(t, verify.IsApplied, verify.Run(context.Background(), says(verify.Applied()), verify.Subject{}).Is())
}

func TestAll(t *testing.T) {
	applied, absent, partial, unclear := says(verify.Applied("a")), says(verify.Absent()), says(verify.Partial()), says(verify.Unclear())
	for _, tc := range []struct {
		name string
		of   []verify.Verifier
		want verify.Is
	}{
		{"nothing", nil, verify.CannotTell},
		{"all applied", []verify.Verifier{applied, applied}, verify.IsApplied},
		{"all absent", []verify.Verifier{absent, absent}, verify.IsAbsent},
		{"mixed", []verify.Verifier{applied, absent}, verify.IsPartial},
		{"partial", []verify.Verifier{applied, partial}, verify.IsPartial},
		{"one cannot tell", []verify.Verifier{applied, unclear}, verify.CannotTell},
		{"a missing one cannot tell", []verify.Verifier{applied, nil}, verify.CannotTell},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, verify.All(tc.of...)(context.Background(), verify.Subject{}).Is())
		})
	}
	require.Equal(t, []string{"a", "a"}, verify.All(applied, applied)(context.Background(), verify.Subject{}).Findings())
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
		want    verify.Is
	}{
		{"fits", `1`, `"x"`, verify.AfterCall, verify.IsApplied},
		{"does not hold", `1`, `""`, verify.AfterCall, verify.IsAbsent},
		{"input of another type", `"1"`, `"x"`, verify.AfterCall, verify.CannotTell},
		{"output of another type", `1`, `2`, verify.AfterCall, verify.CannotTell},
		{"after an undo", `1`, `"x"`, verify.AfterUndo, verify.CannotTell},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := verify.Subject{Phase: tc.phase, Input: json.RawMessage(tc.in), Output: json.RawMessage(tc.out)}
			require.Equal(t, tc.want, v(context.Background(), s).Is())
		})
	}
}
