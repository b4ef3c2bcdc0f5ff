package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

type mailIn struct {
	To    []string `json:"to"`
	Body  string   `json:"body" role:"content"`
	Parts []struct {
		Text string `json:"text" role:"content"`
		Kind string `json:"kind" role:"selector"`
	} `json:"parts,omitempty"`
}

var mailRoles = provenance.Roles{"/body": provenance.Payload, "/parts/*/text": provenance.Payload, "/parts/*/kind": provenance.Selector}

// TestRoleTags: the tags of a field are the roles of the arguments, at any
// depth.
func TestRoleTags(t *testing.T) {
	send := func(context.Context, ctxperm.ToolContext, mailIn) (string, error) { return "", nil }
	made, err := tool.CreateTyped("mail", "", nil, send, tool.Pure())
	require.NoError(t, err)
	require.Equal(t, mailRoles, made.Spec().Roles)

	held, err := tool.Stateful("mail", "", nil, func(context.Context, ctxperm.ToolContext) (int, error) { return 0, nil },
		func(context.Context, ctxperm.ToolContext, mailIn, int) (string, int, error) { return "", 0, nil })
	require.NoError(t, err)
	require.Equal(t, mailRoles, held.Spec().Roles)

	bound, err := tool.Bind(mailer{}, map[string]tool.Spec{"Send": {Roles: provenance.Roles{"/body": provenance.Authority}}})
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/body": provenance.Authority, "/parts/*/text": provenance.Payload, "/parts/*/kind": provenance.Selector}, bound[0].Spec().Roles,
		"the Spec counts")

	type wrong struct {
		Body string `json:"body" role:"payload"`
	}
	_, err = tool.CreateTyped("mail", "", nil, func(context.Context, ctxperm.ToolContext, wrong) (string, error) { return "", nil })
	require.EqualError(t, err, `tool "mail": argument "/body": "payload" is no role; valid are authority, content, selector`)
}

type mailer struct{}

func (mailer) Send(context.Context, mailIn) (string, error) { return "", nil }

// TestParamRoles: a parameter has a role, which a setting has not.
func TestParamRoles(t *testing.T) {
	made, err := tool.FromSpec(withParams(tool.Params{
		{Name: "to", Type: "array", Items: "string"}, {Name: "a/b", Type: "string", Role: provenance.Payload}, {Name: "page", Type: "integer", Role: provenance.Selector},
	}))
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/a~1b": provenance.Payload, "/page": provenance.Selector}, made.Spec().Roles)
	again, err := tool.FromSpec(made.Spec())
	require.NoError(t, err)
	require.Equal(t, made.Digest(), again.Digest())
	plain, err := tool.FromSpec(withParams(tool.Params{{Name: "to", Type: "array", Items: "string"}, {Name: "a/b", Type: "string"}, {Name: "page", Type: "integer"}}))
	require.NoError(t, err)
	require.NotEqual(t, made.Digest(), plain.Digest(), "an approval was for the roles")

	_, err = tool.FromSpec(withParams(tool.Params{{Name: "to", Type: "string", Role: "who"}}))
	require.ErrorContains(t, err, `"who" is no role`)
	both := withParams(tool.Params{{Name: "to", Type: "string", Role: provenance.Payload}})
	both.Roles = provenance.Roles{"/to": provenance.Authority}
	_, err = tool.FromSpec(both)
	require.ErrorContains(t, err, `parameter "to": its role is content, and Roles says authority`)
	set := withParams(nil)
	set.Settings = tool.Params{{Name: "to", Type: "string", Role: provenance.Payload}}
	_, err = tool.FromSpec(set)
	require.ErrorContains(t, err, `parameter "to": only an argument has a role`)
}

// TestPlacesThatAreNone: a role or a trust of a part that the schema does not
// know is refused.
func TestPlacesThatAreNone(t *testing.T) {
	s := withParams(tool.Params{{Name: "to", Type: "string"}})
	s.Roles = provenance.Roles{"": provenance.Payload, "/too": provenance.Authority}
	_, err := tool.FromSpec(s)
	require.EqualError(t, err, `tool "x": role of argument "/too": "too" is not known, did you mean "to"? known: "to"`)
	s.Roles = provenance.Roles{"": provenance.Payload, "/to": provenance.Authority}
	s.Output = json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"additionalProperties":false}`)
	s.OutputContent = &provenance.Content{Fields: map[string]provenance.Trust{"/ids": provenance.Trusted}}
	_, err = tool.FromSpec(s)
	require.EqualError(t, err, `tool "x": trust of field "/ids": "ids" is not known, did you mean "id"? known: "id"`)
	s.Output = nil
	_, err = tool.FromSpec(s)
	require.NoError(t, err, "nothing says what the output has")
	free := withParams(nil)
	free.Roles = provenance.Roles{"": provenance.Payload}
	_, err = tool.FromSpec(free)
	require.NoError(t, err)
}
