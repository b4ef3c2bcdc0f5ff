package review_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/review"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

func made(t *testing.T, change func(*tool.Spec)) tool.Tool {
	s := tool.Spec{
		Name: "fine", Description: "Does it.", EffectClass: effect.Pure,
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("x"), nil
		},
	}
	change(&s)
	out, err := tool.FromSpec(s)
	require.NoError(t, err)
	return out
}

// found lists the rules and places of what is found, but for the missing grade.
func found(tools ...tool.Tool) (out []string) {
	for _, f := range review.Tools(tools...) {
		if f.Rule != "grade" {
			out = append(out, f.Rule+" "+f.Path)
		}
	}
	return out
}

// TestSchemas: what is said of one argument, or of the schema of all of them.
func TestSchemas(t *testing.T) {
	argument := func(schema string) string {
		return `{"type":"object","properties":{"a":` + schema + `},"additionalProperties":false}`
	}
	const a = "/input/properties/a"
	for name, tt := range map[string]struct {
		schema string
		want   []string
	}{
		"good":                        {argument(`{"type":"string","description":"A."}`), nil},
		"a number without bounds":     {argument(`{"type":"number","description":"A."}`), nil},
		"no description":              {argument(`{"type":"string"}`), []string{"argument_description " + a}},
		"a long one":                  {argument(`{"type":"string","description":"` + strings.Repeat("ä", 201) + `"}`), []string{"argument_description " + a}},
		"one of 200":                  {argument(`{"type":"string","description":"` + strings.Repeat("ä", 200) + `"}`), nil},
		"described where it leads":    {`{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"additionalProperties":false,"$defs":{"d":{"type":"string","description":"D."}}}`, nil},
		"camel case":                  {`{"type":"object","properties":{"newText":{"type":"string","description":"A."}},"additionalProperties":false}`, []string{"argument_name /input/properties/newText"}},
		"a name to escape":            {`{"type":"object","properties":{"a/b":{"type":"string","description":"A."}},"additionalProperties":false}`, []string{"argument_name /input/properties/a~1b"}},
		"several types":               {argument(`{"type":["string","integer"],"description":"A."}`), []string{"ambiguous " + a + "/type"}},
		"or null":                     {argument(`{"type":["string","null"],"description":"A."}`), nil},
		"no type":                     {argument(`{"description":"A."}`), []string{"ambiguous " + a}},
		"an enum says enough":         {argument(`{"enum":["x","y"],"description":"A."}`), nil},
		"one value":                   {argument(`{"enum":["x"],"description":"A."}`), []string{"enum " + a + "/enum"}},
		"forms that overlap":          {argument(`{"oneOf":[{"type":"integer"},{"type":"number"}],"description":"A."}`), []string{"ambiguous " + a + "/oneOf"}},
		"forms of several types":      {argument(`{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}],"description":"A."}`), nil},
		"forms by constants":          {argument(`{"anyOf":[{"enum":["a","b"]},{"const":"c"}],"description":"A."}`), nil},
		"forms of one constant":       {argument(`{"anyOf":[{"enum":["a","b"]},{"const":"b"}],"description":"A."}`), []string{"ambiguous " + a + "/anyOf"}},
		"forms by a member":           {argument(`{"anyOf":[{"type":"object","properties":{"k":{"const":1,"description":"K."}},"required":["k"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":2,"description":"K."}},"required":["k"],"additionalProperties":false}],"description":"A."}`), nil},
		"forms by a member each has":  {argument(`{"anyOf":[{"type":"object","properties":{"k":{"type":"string","description":"K."}},"required":["k"],"additionalProperties":false},{"type":"object","properties":{"j":{"type":"string","description":"J."}},"additionalProperties":false}],"description":"A."}`), nil},
		"forms by one not required":   {argument(`{"anyOf":[{"type":"object","properties":{"k":{"const":1,"description":"K."}},"additionalProperties":false},{"type":"object","properties":{"k":{"const":2,"description":"K."}},"additionalProperties":false}],"description":"A."}`), []string{"ambiguous " + a + "/anyOf"}},
		"forms that are referred to":  {`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/d"},{"type":"integer"}],"description":"A."}},"additionalProperties":false,"$defs":{"d":{"type":"string"}}}`, nil},
		"forms nobody knows":          {`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/properties/b"},{"type":"integer"}],"description":"A."},"b":{"type":"string","description":"B."}},"additionalProperties":false}`, []string{"ambiguous " + a + "/anyOf"}},
		"open":                        {`{"type":"object","properties":{"a":{"type":"string","description":"A."}}}`, []string{"open /input"}},
		"open inside":                 {argument(`{"type":"array","items":{"type":"object"},"description":"A."}`), []string{"open " + a + "/items"}},
		"a map":                       {argument(`{"type":"object","additionalProperties":{"type":"string"},"description":"A."}`), nil},
		"a default":                   {argument(`{"type":"integer","default":1,"description":"A."}`), nil},
		"a default that is refused":   {argument(`{"type":"integer","default":"1","description":"A."}`), []string{"default " + a + "/default"}},
		"a default by way of another": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/d","default":1,"description":"A."}},"additionalProperties":false,"$defs":{"d":{"type":"string"}}}`, []string{"default " + a + "/default"}},
		"inside forms":                {argument(`{"allOf":[{"type":"string"},{"enum":["x"]}],"description":"A."}`), []string{"enum " + a + "/allOf/1/enum"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := found(made(t, func(s *tool.Spec) { s.Input = json.RawMessage(tt.schema) }))
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDeclarations(t *testing.T) {
	back := func(context.Context, tool.RevertContext) error { return nil }
	look := verify.Output(func(_, _ json.RawMessage) error { return nil })
	for name, tt := range map[string]struct {
		change func(*tool.Spec)
		want   []string
	}{
		"good":               {func(*tool.Spec) {}, nil},
		"two underscores":    {func(s *tool.Spec) { s.Name = "a__b" }, []string{"name /name"}},
		"no description":     {func(s *tool.Spec) { s.Description = "" }, []string{"description /description"}},
		"a long one":         {func(s *tool.Spec) { s.Description = strings.Repeat("x", 201) }, []string{"description /description"}},
		"no class":           {func(s *tool.Spec) { s.EffectClass = "" }, []string{"effect_class /effect_class"}},
		"a pivot":            {func(s *tool.Spec) { s.EffectClass = effect.Pivot }, []string{"verify /effect_class"}},
		"a pivot that looks": {func(s *tool.Spec) { s.EffectClass, s.Verify = effect.Pivot, look }, nil},
		"through handles":    {func(s *tool.Spec) { s.EffectClass, s.Confinement = effect.Reversible, tool.Handles }, []string{"verify /effect_class"}},
		"no version of undo": {func(s *tool.Spec) { s.EffectClass, s.Revert, s.Verify = effect.Compensable, back, look }, []string{"revert /effect_class"}},
		"deferrable":         {func(s *tool.Spec) { s.EffectClass, s.Verify = effect.Deferrable, look }, []string{"revert /effect_class"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, found(made(t, tt.change)))
		})
	}
	one := review.Tools(made(t, func(*tool.Spec) {}))
	require.Len(t, one, 1)
	require.Equal(t, "grade", one[0].Rule)
}

func TestAlike(t *testing.T) {
	called := func(name, description string) tool.Tool {
		return made(t, func(s *tool.Spec) { s.Name, s.Description, s.Version = name, description, "" })
	}
	for _, tt := range []struct {
		a, b string
		like bool
	}{
		{"file_read", "read_file", true},
		{"file_read", "fileread", true},
		{"send_mail", "send_mails", true},
		{"step_1", "step_2", false},
		{"get", "set", false},
		{"file_read", "file_write", false},
	} {
		got := found(called(tt.a, "Reads it."), called(tt.b, "Another thing."))
		require.Equal(t, tt.like, slices.Contains(got, "alike /name"), "%s, %s", tt.a, tt.b)
	}
	require.Equal(t, []string{"alike /description"}, found(called("first", "Sends a mail to somebody."), called("other", "sends, a mail: to somebody")))
	require.Empty(t, found(called("first", "Sends a mail to somebody."), called("other", "Sends a file to a printer.")))
	old := made(t, func(s *tool.Spec) { s.Version = "1" })
	require.Empty(t, found(old, made(t, func(s *tool.Spec) { s.Version = "2" })), "versions of one tool are one")
}

// TestBuiltin: the tools that come with remit pass their own review, but for the values of
// a statement, which can be of several types and are a list or named.
func TestBuiltin(t *testing.T) {
	for _, f := range review.Tools(append(builtin.Files(), builtin.Databases()...)...) {
		require.True(t, strings.HasPrefix(f.Tool, "sql_") && strings.HasPrefix(f.Path, "/input/properties/params/"), "%+v", f)
	}
}
