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
