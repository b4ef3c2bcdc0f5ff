package rego_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// TestReadsContent checks that the runtime reads a file only for a policy that
// can read its content.
func TestReadsContent(t *testing.T) {
	for text, want := range map[string]bool{
		control: false,
		control + `ensure contains "x" if input.changes[_].text == "x"`:                                                       true,
		control + "ensure contains \"x\" if {\n\tsome c in input.changes\n\tc.cut\n}":                                         true,
		control + "ensure contains \"x\" if {\n\tsome c in input.changes\n\tbad(c)\n}\nbad(c) if not c.text == \"a\"\n":       true,
		control + "ensure contains \"x\" if {\n\tevery c in input.changes {\n\t\tc.media_type == \"text/plain\"\n\t}\n}":      true,
		control + `ensure contains "x" if object.get(input.changes[0], "text", "") == "x"`:                                    true,
		control + `ensure contains "x" if input.changes[0]["size"] > 3`:                                                       true,
		control + "ensure contains \"x\" if {\n\tsome c in input.changes\n\twalk(c, [_, \"x\"])\n}":                           true,
		control + `ensure contains "x" if contains(json.marshal(input.changes), "x")`:                                         true,
		control + `ensure contains "x" if count(input) > 3`:                                                                   true,
		control + `label contains "x" if input.changes[_].text == "x"`:                                                        true,
		control + `ensure contains "x" if input.changes[_].resource.text == "file://x/y"`:                                     false,
		control + `ensure contains "x" if input.changes[_].after == "x"`:                                                      false,
		control + `ensure contains "x" if input.access.resource.text == "file://x/y"`:                                         false,
		control + "ensure contains \"x\" if {\n\tsome c in input.changes\n\tc.resource.text == input.access.resource.text\n}": false,
		control + `deny contains "x" if input.call.args.text == "x"`:                                                          false,
	} {
		e := engine(t, text)
		r, err := rego.NewReloader(context.Background(), rego.Options{Modules: map[string]string{"p.rego": text}})
		require.NoError(t, err)
		for _, is := range []interface{ ReadsContent() bool }{e, rego.NewSwappableEngine(e), r} {
			require.Equal(t, want, is.ReadsContent(), text)
		}
	}
	require.False(t, (*rego.Engine)(nil).ReadsContent())
}

// TestDocumentOfContent checks that the content is in the fields of the schema.
func TestDocumentOfContent(t *testing.T) {
	text := "a"
	for _, c := range []perm.ChangeFacts{
		{Kind: "write", Text: &text, MediaType: "text/plain", Size: 1},
		{Kind: "write", Text: new(string), MediaType: "application/octet-stream", Size: 9, Binary: true},
		{Kind: "write", Text: &text, Cut: true, Masked: true},
	} {
		requireSameDocument(t, perm.Request{Changes: []perm.ChangeFacts{c}})
	}
	bad := "\xff"
	for _, c := range []perm.ChangeFacts{{Text: &bad}, {MediaType: bad}} {
		e := engine(t, control+`ensure contains "x" if input.changes[_].text == "x"`)
		_, err := e.Decide(context.Background(), perm.Request{Purpose: perm.PurposeVerify, Changes: []perm.ChangeFacts{c}})
		require.ErrorIs(t, err, rego.ErrInput)
	}
}
