package define_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/define"
)

// TestNobodyMoreSeesIt checks that a definition cannot show a tool to more
// sessions than its implementation allows. It cannot declare the output safer
// either.
func TestNobodyMoreSeesIt(t *testing.T) {
	spec := tool.Spec{
		Name: "peek", Description: "Looks.", Capabilities: []string{"vision"}, MinProviderTrust: 500,
		OutputContent: &provenance.Content{Trust: provenance.Trusted},
	}
	spec.Execute = implementations(t)["example/mail"].Execute
	base, err := tool.FromSpec(spec)
	require.NoError(t, err)
	of := map[string]define.Implementation{"peek": define.FromTool(base)}
	text := func(more string) string {
		return `{"schemaVersion":1,"id":"a","version":"1","implementation":"peek","function":{"name":"look","description":"Looks."},` + more + `}`
	}
	for more, want := range map[string]string{
		`"audience":{"confidence":499}`:          "a.json:1:142: it is less than what the implementation wants, which is 500",
		`"content":{"confidentiality":"public"}`: "a.json:1:127: it is milder than what the implementation says of itself, which is private",
	} {
		_, err := define.Load(folder(text(more)), of)
		require.ErrorContains(t, err, want)
	}
	tools, err := define.Load(folder(text(`"audience":{"capabilities":["audio","vision"],"confidence":501},"content":{}`)), of)
	require.NoError(t, err)
	s := tools[0].Spec()
	require.Equal(t, []string{"vision", "audio"}, s.Capabilities)
	require.Equal(t, 501, s.MinProviderTrust)
	require.Equal(t, &provenance.Content{}, s.OutputContent)
	tools, err = define.Load(folder(text(`"tags":[]`)), of)
	require.NoError(t, err)
	require.Equal(t, []string{"vision"}, tools[0].Spec().Capabilities)
	require.Equal(t, 500, tools[0].Spec().MinProviderTrust)
	require.Equal(t, spec.OutputContent, tools[0].Spec().OutputContent)
}

// TestRoles checks that a file says what arguments do and which parts of the
// output are trusted, and that it makes nothing milder than the implementation
// says of itself.
func TestRoles(t *testing.T) {
	spec := tool.Spec{
		Name: "send", Description: "Sends.", Execute: implementations(t)["example/mail"].Execute,
		Input:         []byte(`{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"body":{"type":"string"},"page":{"type":"integer"}},"additionalProperties":false}`),
		Roles:         provenance.Roles{"/body": provenance.Payload, "/page": provenance.Selector},
		Output:        []byte(`{"type":"object","properties":{"id":{"type":"string"},"at":{"type":"string"},"text":{"type":"string"}},"additionalProperties":false}`),
		OutputContent: &provenance.Content{Fields: map[string]provenance.Trust{"/id": provenance.Trusted, "/at": provenance.Trusted}},
	}
	base, err := tool.FromSpec(spec)
	require.NoError(t, err)
	spec.Roles, spec.OutputContent = nil, nil
	silent, err := tool.FromSpec(spec)
	require.NoError(t, err)
	load := func(of tool.Tool, more string) (tool.Spec, error) {
		text := `{"schemaVersion":1,"id":"a","version":"1","implementation":"send","function":{"name":"send","description":"Sends."},` + more + `}`
		tools, err := define.Load(folder(text), map[string]define.Implementation{"send": define.FromTool(of)})
		if err != nil {
			return tool.Spec{}, err
		}
		return tools[0].Spec(), nil
	}
	for more, want := range map[string]string{
		`"roles":{"/to":"content"}`:                 "a.json:1:132: it is milder than what the implementation says of itself, which is authority",
		`"roles":{"/to/*":"content"}`:               "which is authority",
		`"roles":{"/*":"content"}`:                  "which is authority",
		`"roles":{"":"selector"}`:                   "which is authority",
		`"roles":{"/body":"selector"}`:              "which is content",
		`"roles":{"/body":"text"}`:                  `a.json:1:134: unknown role; valid are authority, content, selector`,
		`"roles":{"body":"content"}`:                `argument "body" is no JSON pointer: it begins with a slash`,
		`"roles":{"/bodi":"content"}`:               `a.json:1:126: "bodi" is not known, did you mean "body"?`,
		`"roles":["/body"]`:                         `"roles" is an array, want an object`,
		`"content":{"fields":{"/text":"trusted"}}`:  "a.json:1:146: it is milder than what the implementation says of itself, which is untrusted",
		`"content":{"fields":{"":"trusted"}}`:       "which is untrusted",
		`"content":{"fields":{"/*":"trusted"}}`:     "which is untrusted",
		`"content":{"fields":{"/id":"maybe"}}`:      `field "/id": trust "maybe"; valid are untrusted, trusted`,
		`"content":{"fields":{"/ids":"untrusted"}}`: `"ids" is not known, did you mean "id"?`,
	} {
		_, err := load(base, more)
		require.ErrorContains(t, err, want, more)
	}
	s, err := load(base, `"roles":{"/body":"authority","/to":"authority","/page":"content"},"content":{"fields":{"/id":"untrusted"}}`)
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/body": provenance.Authority, "/to": provenance.Authority, "/page": provenance.Payload}, s.Roles)
	require.Equal(t, map[string]provenance.Trust{"/id": provenance.Untrusted, "/at": provenance.Trusted}, s.OutputContent.Fields, "the rest is as the implementation has it")
	s, err = load(base, `"tags":[]`)
	require.NoError(t, err)
	require.Equal(t, base.Spec().Roles, s.Roles)
	require.Equal(t, base.Spec().OutputContent, s.OutputContent)
	s, err = load(silent, `"roles":{"/to":"content"},"content":{"fields":{"/text":"trusted"}}`)
	require.NoError(t, err, "an implementation that says nothing leaves it to the file")
	require.Equal(t, provenance.Roles{"/to": provenance.Payload}, s.Roles)
	require.Equal(t, map[string]provenance.Trust{"/text": provenance.Trusted}, s.OutputContent.Fields)

	narrow := `{"schemaVersion":1,"id":"a","version":"1","implementation":"send","function":{"name":"send","description":"Sends.",
		"parameters":{"type":"object","properties":{"body":{"type":"string"}},"additionalProperties":false}}}`
	tools, err := define.Load(folder(narrow), map[string]define.Implementation{"send": define.FromTool(base)})
	require.NoError(t, err)
	require.Equal(t, provenance.Roles{"/body": provenance.Payload}, tools[0].Spec().Roles, "the file has no other arguments")
	require.Len(t, base.Spec().Roles, 2, "the implementation stays as it is")
}
