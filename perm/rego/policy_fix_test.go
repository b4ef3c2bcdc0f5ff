package rego_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// changed applies the change to the text of a one-file policy, as its reader
// does. So the reported change is the evaluated one.
func changed(t *testing.T, text string, c rego.PolicyFix) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, e := range c.Edits {
		if e.At == "" {
			lines = append(lines, "", e.Text)
			continue
		}
		var row int
		_, err := fmt.Sscanf(e.At, "p.rego:%d", &row)
		require.NoError(t, err)
		if head, condition, one := strings.Cut(lines[row-1], " if "); one && !strings.HasPrefix(condition, "{") {
			lines[row-1] = head + " if { " + condition + "; " + e.Text + " }"
		} else if one {
			lines[row-1] = head + " if { " + e.Text + "; " + strings.TrimPrefix(condition, "{")
		} else {
			lines[row-1] += " if " + e.Text
		}
	}
	return strings.Join(lines, "\n")
}

func TestAllowing(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		edits  []string // position of each edit
		effect perm.Effect
		change func(*perm.Request)
	}{
		"as it is":      {text: control, effect: perm.Allow},
		"ask stays":     {text: control + `ask contains "x" if true`, effect: perm.Ask},
		"no rule":       {text: `deny contains "x" if input.tool.name == "other"`, edits: []string{""}, effect: perm.Allow},
		"one deny":      {text: control + "deny contains \"x\" if input.tool.name != \"other\"", edits: []string{"p.rego:4", ""}, effect: perm.Allow},
		"bare deny":     {text: control + "deny contains \"x\"", edits: []string{"p.rego:4", ""}, effect: perm.Allow},
		"two denies":    {text: control + "deny contains \"x\" if true\ndeny contains \"y\" if { true }", edits: []string{"p.rego:4", "p.rego:5", ""}, effect: perm.Allow},
		"deny, no rule": {text: "deny contains \"x\" if true", edits: []string{"p.rego:3", "", ""}, effect: perm.Allow},
		"deny then ask": {text: "deny contains \"x\" if true\nask contains \"y\" if true", edits: []string{"p.rego:3", ""}, effect: perm.Ask},
		"name taken":    {text: control + "deny contains \"x\" if not excepted\nexcepted if input.tool.name == \"other\"", edits: []string{"p.rego:4", ""}, effect: perm.Allow},
		"bad hold":      {text: control + `hold contains "x" if true`, edits: []string{"p.rego:4", ""}, effect: perm.Allow},
		"bad require":   {text: control + "require contains concat(\"\", [\"x\", \"y\"]) if true", edits: []string{"p.rego:4", ""}, effect: perm.Allow},
		"hidden": {
			text: control + "hide contains \"x\" if true", edits: []string{"p.rego:4", ""}, effect: perm.Allow,
			change: func(r *perm.Request) { r.Purpose = perm.PurposeList },
		},
		"postcondition": {
			text: "ensure contains \"x\" if true", edits: []string{"p.rego:3", ""}, effect: perm.Deny,
			change: func(r *perm.Request) { r.Purpose = perm.PurposeVerify },
		},
		"method": {
			text: `deny contains "x" if input.access.method == "POST"`, edits: []string{"p.rego:3", "", ""}, effect: perm.Allow,
			change: func(r *perm.Request) { r.Access.Action, r.Access.Method = perm.Connect, "POST" },
		},
		"arguments": {
			text: `deny contains "x" if true`, edits: []string{"p.rego:3", "", ""}, effect: perm.Allow,
			change: func(r *perm.Request) {
				r.Access = perm.AccessFacts{Action: perm.Call, Resource: perm.ResourceFacts{Kind: "tool", Text: "tool://a", Name: "a"}}
				r.Call.Args = json.RawMessage(`{"q":"\"}\n","n":1.50,"l":[null,true]}`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text
			if !strings.HasPrefix(text, "package") {
				text = "package remit\n\n" + text
			}
			r := request()
			if c.change != nil {
				c.change(&r)
			}
			got, err := engine(t, text).SuggestAllow(context.Background(), r)
			require.NoError(t, err)
			var edits []string
			for _, e := range got.Edits {
				edits = append(edits, e.At)
			}
			require.Equal(t, c.edits, edits, "%+v", got)
			require.Equal(t, c.effect.String(), got.Effect)
			after := engine(t, changed(t, text, got))
			d := decide(t, after, r)
			require.Equal(t, c.effect, d.Effect(), "%s\n%v", changed(t, text, got), d.Reasons())
			require.Empty(t, d.Details().HideReasons)
			require.Empty(t, d.Details().FailedPostconditions)
		})
	}
}

// TestAllowingLetsNothingElseThrough checks that a change lets through only
// requests that a rule cannot distinguish from the given one.
func TestAllowingLetsNothingElseThrough(t *testing.T) {
	text := "package remit\n\ndeny contains \"x\" if true\n"
	r := request()
	c, err := engine(t, text).SuggestAllow(context.Background(), r)
	require.NoError(t, err)
	e := engine(t, changed(t, text, c))
	require.Equal(t, perm.Allow, decide(t, e, r).Effect())
	for name, change := range map[string]func(*perm.Request){
		"principal": func(r *perm.Request) { r.Principal.ID += "x" },
		"tool":      func(r *perm.Request) { r.Tool.Name += "x" },
		"action":    func(r *perm.Request) { r.Access.Action = perm.Delete },
		"resource":  func(r *perm.Request) { r.Access.Resource.Text += "x" },
	} {
		other := request()
		change(&other)
		require.Equal(t, perm.Deny, decide(t, e, other).Effect(), name)
	}
}

// TestAllowingRandomPolicies checks random policies: the reported change lets
// the request through, or an error states that no change does.
func TestAllowingRandomPolicies(t *testing.T) {
	told := 0
	policies := statcheck.Size(30, 300)
	for seed := range policies {
		rnd := rand.New(rand.NewPCG(uint64(seed), 11))
		text := strings.TrimSuffix(randomPolicy(rnd, conditions()), "\n")
		e := randomEngine(t, text)
		for _, r := range randomRequests(rnd, 6) {
			c, err := e.SuggestAllow(context.Background(), r)
			if err != nil {
				continue // a rule fails under every change
			}
			told++
			if r.Purpose != perm.PurposeVerify {
				require.NotEqual(t, "deny", c.Effect)
			}
			before, err := e.Decide(context.Background(), r)
			require.NoError(t, err)
			require.Equal(t, before.Effect() != perm.Deny || r.Purpose == perm.PurposeVerify, len(c.Edits) == 0)
		}
	}
	require.Greater(t, told, 2*policies)
}

func TestAllowingCannot(t *testing.T) {
	_, err := (*rego.Engine)(nil).SuggestAllow(context.Background(), request())
	require.ErrorIs(t, err, rego.ErrNoFix)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = engine(t, control).SuggestAllow(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
}
