package define_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/define"
)

// spec draws a literal that FromSpec takes.
func spec(t *rapid.T) tool.Spec {
	word := rapid.StringMatching(`[a-z]{1,8}`)
	text := rapid.StringMatching(`[ -~äß𝄞"\\]{1,20}`)
	s := tool.Spec{
		Name: word.Draw(t, "name"), Description: text.Draw(t, "description"),
		Version:     rapid.StringMatching(`[0-9]\.[0-9]{1,2}\.[0-9](-[a-z]{1,3})?`).Draw(t, "version"),
		Tags:        rapid.SliceOfNDistinct(word, 0, 3, rapid.ID[string]).Draw(t, "tags"),
		EffectClass: rapid.SampledFrom(append(effect.Classes(), "")).Draw(t, "class"),
		Confinement: rapid.SampledFrom([]tool.Confinement{"", tool.Trusted, tool.Handles}).Draw(t, "confinement"),
		Destination: rapid.SampledFrom([]tool.Destination{"", tool.NoDestination, tool.Configured, tool.ThirdParty, tool.ModelChosen}).Draw(t, "destination"),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, nil
		},
	}
	if rapid.Bool().Draw(t, "deprecated") {
		s.Deprecated = text.Draw(t, "instead")
	}
	if rapid.Bool().Draw(t, "output") {
		s.Output = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
	}
	if s.EffectClass == effect.Compensable || s.EffectClass == effect.Reversible || rapid.Bool().Draw(t, "undo") {
		s.Revert, s.UndoVersion = func(context.Context, tool.RevertContext) error { return nil }, word.Draw(t, "undo version")
	}
	s.Hints.Idempotent, s.Hints.Timeout = rapid.Bool().Draw(t, "idempotent"), time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "timeout"))
	arguments(t, &s)
	s.Settings = configuration(t)
	if s.Settings != nil && rapid.Bool().Draw(t, "checked") {
		s.CheckSettings = func(context.Context, json.RawMessage) ([]string, error) { return nil, nil }
	}
	if rapid.Bool().Draw(t, "shown") {
		s.Display = tool.Display{Icon: word.Draw(t, "icon"), Surfaces: []string{word.Draw(t, "surface")}, Names: map[string]string{"de": text.Draw(t, "de")}}
	}
	return s
}

func arguments(t *rapid.T, s *tool.Spec) {
	if !rapid.Bool().Draw(t, "arguments") {
		return
	}
	s.Params = tool.Params{}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{2,8}`), 0, 4, rapid.ID[string]).Draw(t, "parameters") {
		kind := rapid.SampledFrom([]string{"string", "integer", "boolean", "number"}).Draw(t, "type")
		p := tool.Param{Name: name, Type: kind, Required: rapid.Bool().Draw(t, "required")}
		switch kind {
		case "string":
			actions := []perm.Action{perm.Read, perm.Write}
			if s.EffectClass == effect.Pure {
				actions = actions[:1]
			}
			s.Needs = append(s.Needs, perm.Access(rapid.SampledFrom(actions).Draw(t, "action"), "file://workspace/{"+name+"}"))
			if rapid.Bool().Draw(t, "sensitive") {
				s.Hints.Sensitive = append(s.Hints.Sensitive, name)
			}
		case "number":
			s.Counters = map[string]string{"sum": name}
		}
		s.Params = append(s.Params, p)
	}
	if rapid.Bool().Draw(t, "net") {
		s.Needs = append(s.Needs, perm.ResourceAccess{Action: perm.Connect, Resource: "https://api.example.com/**", Method: "POST"})
	}
}

func configuration(t *rapid.T) (all tool.Params) {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{2,8}`), 0, 3, rapid.ID[string]).Draw(t, "settings")
	for _, name := range names {
		p := rapid.SampledFrom([]tool.Param{
			{Type: "string", Secret: true, Required: true},
			{Type: "string", Secret: true},
			{Type: "boolean", Default: false},
			{Type: "integer", Default: 0},
			{Type: "number", Enum: []any{0.5, 1}},
			{Type: "array", Items: "string", Examples: []any{[]any{"x"}}},
			{Type: "object", Description: "anything"},
		}).Draw(t, "setting")
		p.Name = name
		all = append(all, p)
	}
	return all
}

// TestWrittenIsLoaded checks that a definition written from any literal
// restricts nothing: it loads to the same digest.
func TestWrittenIsLoaded(t *testing.T) {
	statcheck.Checks(t, 100, 3000)
	rapid.Check(t, func(t *rapid.T) {
		s := spec(t)
		s.Provenance = provenance.Source{Kind: provenance.Definition, Name: "x.json", Version: s.Version, Implementation: "key"}
		s.AccessFor = func(json.RawMessage) ([]perm.ResourceAccess, error) { return nil, nil } // a narrowing always has one
		base, err := tool.FromSpec(s)
		require.NoError(t, err)
		text, err := define.Write(base, "key")
		require.NoError(t, err)
		got, err := define.Load(fstest.MapFS{"x.json": {Data: text}}, map[string]define.Implementation{"key": define.FromTool(base)})
		require.NoError(t, err, "%s", text)
		require.Len(t, got, 1)
		require.Equal(t, base.Digest(), got[0].Digest(), "%s", text)
		require.Equal(t, base.Spec().Display, got[0].Spec().Display)
	})
	_, err := define.Write(tool.Tool{}, "y")
	require.ErrorContains(t, err, "zero Tool")
}

// TestNeedsOfAnUnconfinedTool checks that a file cannot hide accesses of code
// that nothing confines.
func TestNeedsOfAnUnconfinedTool(t *testing.T) {
	for confinement, refused := range map[tool.Confinement]bool{tool.Trusted: true, tool.Handles: false} {
		base, err := tool.FromSpec(tool.Spec{
			Name: "old", Confinement: confinement, Needs: []perm.ResourceAccess{perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Read, "file://other/**")},
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Text("x"), nil
			},
		})
		require.NoError(t, err)
		text := `{"schemaVersion":1,"id":"a","version":"1","implementation":"old","function":{"name":"narrow","description":"Narrow."},
"needs":[{"action":"read","resource":"file://workspace/**"}]}`
		_, err = define.Load(fstest.MapFS{"a.json": {Data: []byte(text)}}, map[string]define.Implementation{"old": define.FromTool(base)})
		if refused {
			require.EqualError(t, err, "a.json:2:1: nothing confines the implementation to its needs, so fewer needs would only hide accesses; leave the member out")
		} else {
			require.NoError(t, err)
		}
	}
}

// TestWhatANarrowingLeavesOut is as the tool has it, also what is only for people.
func TestWhatANarrowingLeavesOut(t *testing.T) {
	base, err := tool.FromSpec(tool.Spec{
		Name: "old", Deprecated: "use new", Display: tool.Display{Icon: "old.svg"},
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("x"), nil
		},
	})
	require.NoError(t, err)
	text := `{"schemaVersion":1,"id":"a","version":"1","implementation":"old","function":{"name":"narrow","description":"Narrow."}%s}`
	for says, want := range map[string][2]string{"": {"use new", "old.svg"}, `,"deprecated":"use newer","icon":"new.svg"`: {"use newer", "new.svg"}} {
		files := fstest.MapFS{"a.json": {Data: fmt.Appendf(nil, text, says)}}
		made, err := define.Load(files, map[string]define.Implementation{"old": define.FromTool(base)})
		require.NoError(t, err)
		require.Equal(t, want, [2]string{made[0].Spec().Deprecated, made[0].Spec().Display.Icon})
	}
}
