package rego_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
)

// TestPromptIsInTheKey checks that a call is decided anew under another prompt:
// each of its members alone changes the decision, also after the engine cached
// the others.
func TestPromptIsInTheKey(t *testing.T) {
	e := engine(t, `package remit
allow contains "x" if true
deny contains "no prompt" if not input.call.prompt
deny contains "client" if input.call.prompt.client == "b"
deny contains "id" if input.call.prompt.id == "p2"
deny contains "text" if contains(input.call.prompt.text, "delete")`)
	ask := func(p *perm.PromptFacts) perm.Effect {
		r := request()
		r.Call.Prompt = p
		return decide(t, e, r).Effect()
	}
	for range 2 { // the second time from the cache
		require.Equal(t, perm.Deny, ask(nil))
		require.Equal(t, perm.Allow, ask(&perm.PromptFacts{Client: "a", ID: "p1", Text: "look"}))
		require.Equal(t, perm.Deny, ask(&perm.PromptFacts{Client: "b", ID: "p1", Text: "look"}))
		require.Equal(t, perm.Deny, ask(&perm.PromptFacts{Client: "a", ID: "p2", Text: "look"}))
		require.Equal(t, perm.Deny, ask(&perm.PromptFacts{Client: "a", ID: "p1", Text: "delete it"}))
		require.Equal(t, perm.Allow, ask(&perm.PromptFacts{Client: "a", ID: "p1"}), "the words are erased")
	}
}
