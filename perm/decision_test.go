package perm_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

func TestEffect(t *testing.T) {
	require.Equal(t, []string{"deny", "ask", "hold", "allow", "deny"},
		[]string{perm.Deny.String(), perm.Ask.String(), perm.Hold.String(), perm.Allow.String(), perm.Effect(9).String()})
	require.Less(t, perm.Deny, perm.Ask)
	require.Less(t, perm.Ask, perm.Hold)
	require.Less(t, perm.Hold, perm.Allow)
}

func TestDecisionZeroDenies(t *testing.T) {
	var d perm.Decision
	require.Equal(t, perm.Deny, d.Effect())
	require.Empty(t, d.Reasons())
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"effect":"deny","reasons":[],"revision":""}`, string(text))
	require.Equal(t, perm.Deny, perm.NewDecision(perm.Effect(4), perm.Details{}).Effect())
}

// TestDecisionKeepsCopies checks that later changes to the inputs and outputs
// of a decision do not change it.
func TestDecisionKeepsCopies(t *testing.T) {
	made := perm.Details{
		Reasons: []perm.Reason{{Text: "r", At: "p.rego:1", Set: "allow"}}, Requires: []perm.Reason{{Text: "verify"}},
		FailedPostconditions: []perm.Reason{{Text: "e"}}, HideReasons: []perm.Reason{{Text: "h"}}, Hints: []string{"hint"}, Labels: []string{"l"},
		Redact: []string{"/args/x"}, Masks: []string{"file://ws/**"}, Revision: "sha256:1",
	}
	d := perm.NewDecision(perm.Allow, made)
	want := d.Details()
	spoil := func(x perm.Details) {
		x.Reasons[0].Text, x.Requires[0].Text, x.FailedPostconditions[0].Text, x.HideReasons[0].Text = "", "", "", ""
		x.Hints[0], x.Labels[0], x.Redact[0], x.Masks[0] = "", "", "", ""
	}
	spoil(made)
	spoil(d.Details())
	d.Reasons()[0].Text = ""
	d.Record().Hints[0] = ""
	require.Equal(t, want, d.Details())
	require.Equal(t, "sha256:1", d.Revision())
	require.Equal(t, perm.Allow, d.Effect())
	require.Equal(t, "r", d.Reasons()[0].Text)
	require.Equal(t, perm.DecisionRecord{Effect: "allow", Reasons: want.Reasons, Hints: []string{"hint"}, Revision: "sha256:1"}, d.Record())
}

func TestEngineFunc(t *testing.T) {
	d, err := perm.EngineFunc(nil).Decide(context.Background(), perm.Request{})
	require.NoError(t, err)
	require.Equal(t, perm.Deny, d.Effect())
	require.Equal(t, "no engine is configured", d.Reasons()[0].Text)
	d, err = perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Hold, perm.Details{}), nil
	}).Decide(context.Background(), perm.Request{})
	require.NoError(t, err)
	require.Equal(t, perm.Hold, d.Effect())
}

func TestActions(t *testing.T) {
	for _, a := range perm.Actions() {
		var back perm.Action
		require.NoError(t, back.UnmarshalText([]byte(a)))
		require.Equal(t, a, back)
		require.Equal(t, a == perm.Read || a == perm.List || a == perm.AskClient, a.Observes())
	}
	require.Equal(t, "unknown action; valid are [read list write delete execute connect use call ask]", new(perm.Action).UnmarshalText([]byte("look")).Error())
	require.False(t, perm.Action("").Valid())
}

func TestPrincipalClone(t *testing.T) {
	p := perm.Principal{ID: "a", Chain: []string{"b"}, Roles: []string{"r"}}
	c := p.Clone()
	c.Chain[0], c.Roles[0] = "x", "x"
	require.Equal(t, perm.Principal{ID: "a", Chain: []string{"b"}, Roles: []string{"r"}}, p)
	require.Equal(t, "agent", c.Kind)
	require.Equal(t, []string{}, perm.Principal{Kind: "user"}.Clone().Roles)
	require.Equal(t, "user", perm.Principal{Kind: "user"}.Clone().Kind)
}
