package rego_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

const asksByKey = `package remit
allow contains "all" if input.access.action
ask contains {"reason": "keyed", "remember": "session", "keys": {k | some k in input.call.args.keys}} if input.call.args.keys
ask contains {"reason": "also keyed", "remember": "session", "keys": ["z"]} if input.call.args.z
ask contains {"reason": "secret", "remember": "never"} if input.call.args.never
ask contains "plain" if input.call.args.plain
hold contains "later" if input.call.args.hold
`

// TestAskSaysWhatAnApprovalCovers checks that keys count only if each reason has
// some, and that an element that is not valid is never a decision.
func TestAskSaysWhatAnApprovalCovers(t *testing.T) {
	e := engine(t, asksByKey)
	never := perm.Remember{Scope: perm.RememberNever}
	for args, want := range map[string]perm.Remember{
		`{"keys": ["b", "a"]}`:           {Scope: perm.RememberSession, Keys: []string{"a", "b"}},
		`{"keys": ["a"], "z": true}`:     {Scope: perm.RememberSession, Keys: []string{"a", "z"}},
		`{"keys": ["a"], "plain": true}`: never,
		`{"keys": ["a"], "never": true}`: never,
		`{"never": true}`:                never,
		`{"plain": true}`:                {},
		`{"keys": ["a"], "hold": true}`:  never,
		`{"plain": true, "hold": true}`:  {},
	} {
		r := request()
		r.Call.EffectClass = "pivot"
		r.Call.Args = json.RawMessage(args)
		d, err := e.Decide(context.Background(), r)
		require.NoError(t, err, args)
		require.Equal(t, perm.Ask, d.Effect(), args)
		require.Equal(t, want, d.Details().Remember, args)
	}
	for _, bad := range []string{`{"keys": []}`, `{"keys": [1]}`, `{"keys": [""]}`} {
		r := request()
		r.Call.Args = json.RawMessage(bad)
		d, err := e.Decide(context.Background(), r)
		require.ErrorIs(t, err, rego.ErrEvaluation, bad)
		require.Equal(t, perm.Deny, d.Effect(), bad)
	}
}

// TestAskObjectsThatCannotBe checks what the loader finds without a request.
func TestAskObjectsThatCannotBe(t *testing.T) {
	for element, want := range map[string]string{
		`{"reason": "a", "remember": "session"}`:              "needs keys",
		`{"reason": "a", "remember": "always"}`:               "is session or never",
		`{"reason": "a", "remember": "never", "keys": ["a"]}`: "has no keys",
		`{"reason": "a"}`:       "is session or never",
		`{"remember": "never"}`: "names its reason",
		`{"reason": "a", "remember": "session", "key": "a"}`:                          `an ask has no field "key"`,
		`{"reason": 1, "remember": "never"}`:                                          `the field "reason" of an ask has the wrong type`,
		`{"reason": "a", "remember": "session", "keys": "a"}`:                         `the field "keys" of an ask has the wrong type`,
		`{"reason": n, "remember": "session"} if n := input.tool.name`:                "needs keys",
		`{"reason": n, "remember": "never"} if n := input.tool.name`:                  "",
		`{"reason": n, "remember": "year"} if n := input.tool.name`:                   "is session or never",
		`{"reason": "a", "remember": n} if n := input.tool.name`:                      "",
		`{"reason": "a", n: "session", "keys": ["a"]} if n := input.tool.name`:        "",
		`{"reason": "a", "remember": "session", "keys": n} if n := {input.tool.name}`: "",
	} {
		_, err := load(control + "ask contains " + element)
		if want == "" {
			require.NoError(t, err, element)
			continue
		}
		require.ErrorContains(t, err, want, element)
	}
}
