package compose_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// TestRoles: an argument of a composed tool has the strictest role that it has
// in a part, and authority if a part gets it in another form.
func TestRoles(t *testing.T) {
	part := func(name string, roles provenance.Roles) compose.Part {
		made, err := tool.FromSpec(tool.Spec{
			Name: name, Input: json.RawMessage(`{"type":"object"}`), Roles: roles,
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Result{}, nil
			},
		})
		require.NoError(t, err)
		return compose.Part{Tool: made}
	}
	const authority, content, selector = provenance.Authority, provenance.Payload, provenance.Selector
	for _, tt := range []struct {
		name            string
		one, two, whole provenance.Roles
	}{
		{"the same", provenance.Roles{"/text": content, "/page": selector}, provenance.Roles{"/text": content, "/page": selector}, provenance.Roles{"/text": content, "/page": selector}},
		{"only one says it", provenance.Roles{"/text": content}, nil, provenance.Roles{"/text": authority}},
		{"the strictest", provenance.Roles{"/text": content}, provenance.Roles{"/text": selector}, provenance.Roles{"/text": content}},
		{"below", provenance.Roles{"": content}, provenance.Roles{"": content, "/to": authority}, provenance.Roles{"": content, "/to": authority}},
		{"below another", provenance.Roles{"/a": selector}, provenance.Roles{"/a": content, "/a/b": selector}, provenance.Roles{"/a": content, "/a/b": selector}},
		{"stars", provenance.Roles{"/*": content}, provenance.Roles{"/text": content}, provenance.Roles{"/*": authority, "/text": content}},
		{"some of the values", provenance.Roles{"": content, "/a/*": authority}, provenance.Roles{"": content, "/*/b": content}, provenance.Roles{"": content, "/a/*": authority, "/*/b": authority}},
		{"some, and the rest is stricter", provenance.Roles{"/a/x": content}, provenance.Roles{"/*/x": content}, provenance.Roles{"/a/x": content, "/*/x": authority}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := part("one", tt.one), part("two", tt.two)
			for _, made := range []func(compose.Declaration, ...compose.Part) (tool.Tool, error){compose.Parallel, compose.Fallback} {
				for _, parts := range [][]compose.Part{{one, two}, {two, one}} {
					both, err := made(compose.Declaration{Name: "both"}, parts...)
					require.NoError(t, err)
					require.Equal(t, tt.whole, both.Spec().Roles)
				}
			}
			either, err := compose.Conditional(compose.Declaration{Name: "either"}, func(json.RawMessage) bool { return true }, one, two)
			require.NoError(t, err)
			require.Equal(t, tt.whole, either.Spec().Roles)
		})
	}
	text := part("text", provenance.Roles{"/text": content})
	alone, err := compose.Chain(compose.Declaration{Name: "alone"}, text)
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/text": content}, alone.Spec().Roles)
	chain, err := compose.Chain(compose.Declaration{Name: "chain"}, text, text)
	require.NoError(t, err)
	require.Empty(t, chain.Spec().Roles, "what the first one returns can have the text in it")
	other := text
	other.Input = func(in json.RawMessage) (json.RawMessage, error) { return in, nil }
	both, err := compose.Parallel(compose.Declaration{Name: "both"}, text, other)
	require.NoError(t, err)
	require.Empty(t, both.Spec().Roles, "the text can be anywhere in it")
	narrow, err := compose.Parallel(compose.Declaration{Name: "narrow", Input: json.RawMessage(`{"type":"object","properties":{"a":{}},"additionalProperties":false}`)}, text)
	require.NoError(t, err)
	require.Empty(t, narrow.Spec().Roles, "no call has a text")
}
