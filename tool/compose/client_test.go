package compose_test

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

// asked makes a part of a tool, changed.
func asked(t *testing.T, tl tool.Tool, change func(*tool.Spec)) compose.Part {
	tl, err := tl.Modify(change)
	require.NoError(t, err)
	return compose.Part{Tool: tl}
}

// TestTheWholeWantsWhatItsPartsWant checks that a composed tool requires of a
// session what its parts require. A tool or a group that is switched off is
// also off inside composed tools.
func TestTheWholeWantsWhatItsPartsWant(t *testing.T) {
	s := newShop(t)
	about := compose.Declaration{Name: "both", Description: "One, then the other.", Tags: []string{"own"}}
	both, err := compose.Chain(about,
		asked(t, s.upper("first"), func(s *tool.Spec) {
			s.MinProviderTrust, s.Capabilities, s.Tags = 300, []string{"vision"}, []string{"one"}
		}),
		asked(t, s.upper("second"), func(s *tool.Spec) {
			s.MinProviderTrust, s.Capabilities, s.Tags, s.Display.Surfaces = 700, []string{"sound"}, []string{"two"}, []string{"chat"}
		}))
	require.NoError(t, err)
	about.Name = "outer"
	outer, err := compose.Fallback(about, compose.Part{Tool: s.upper("third")}, compose.Part{Tool: both})
	require.NoError(t, err)
	loose, err := both.Modify(func(s *tool.Spec) { s.MinProviderTrust, s.Capabilities, s.Tags, s.Display.Surfaces = 0, nil, nil, nil })
	require.NoError(t, err)

	enough := perm.ClientFacts{Surface: "chat", ProviderTrust: 700, Capabilities: []string{"sound", "vision"}}
	for name, tt := range map[string]struct {
		change func(*perm.ClientFacts)
		says   string // of the tool of two; empty: it is seen
	}{
		"enough":                {func(*perm.ClientFacts) {}, ""},
		"less confidence":       {func(c *perm.ClientFacts) { c.ProviderTrust = 699 }, "a confidence of 700"},
		"no sound":              {func(c *perm.ClientFacts) { c.Capabilities = []string{"vision"} }, `the capability "sound"`},
		"another surface":       {func(c *perm.ClientFacts) { c.Surface = "voice" }, "of the kind"},
		"a part is off":         {func(c *perm.ClientFacts) { c.Disabled = []string{"second"} }, "its part second is not for it: it is switched off"},
		"its group is off":      {func(c *perm.ClientFacts) { c.Disabled = []string{"two"} }, "it is switched off"},
		"another one is off":    {func(c *perm.ClientFacts) { c.Disabled = []string{"others"} }, ""},
		"selected":              {func(c *perm.ClientFacts) { c.Selected = []string{"both", "loose", "outer"} }, ""},
		"all parts selected":    {func(c *perm.ClientFacts) { c.Selected = []string{"both", "outer", "one", "two"} }, ""},
		"selected, and one off": {func(c *perm.ClientFacts) { c.Selected, c.Disabled = []string{"both", "outer"}, []string{"first"} }, "its part first"},
	} {
		t.Run(name, func(t *testing.T) {
			c := enough
			tt.change(&c)
			for _, tl := range []tool.Tool{both, outer, loose} {
				if tt.says == "" {
					require.Empty(t, tl.HiddenReason(c), tl.Name())
					continue
				}
				require.Contains(t, tl.HiddenReason(c), tt.says, tl.Name())
			}
		})
	}

	// A group that the whole has from one part is not the other's; its own is.
	for tag, says := range map[string]string{
		"own": "", "one": "its part second is not for it: it is not among the tools that were selected", "two": "its part first",
		"first": "it is not among the tools that were selected",
	} {
		c := enough
		c.Selected = []string{tag}
		require.Contains(t, both.HiddenReason(c), says)
		require.Equal(t, says == "", both.HiddenReason(c) == "", tag)
	}
	c := enough
	c.Selected = []string{"one", "two"}
	require.Empty(t, both.HiddenReason(c))
}

// TestAPartThatIsOff keeps the whole from being offered and run, and runs in no other tool.
func TestAPartThatIsOff(t *testing.T) {
	ctx := context.Background()
	s := newShop(t)
	whole, err := compose.Chain(about, compose.Part{Tool: s.put("put")}, compose.Part{Tool: s.put("more")})
	require.NoError(t, err)
	// Code of the program's own that runs the whole without being it.
	spec := whole.Spec()
	byHand, err := tool.FromSpec(tool.Spec{
		Name: "by_hand", Input: spec.Input, Needs: whole.RequiredAccesses(), EffectClass: effect.Reversible, Confinement: tool.Handles, Execute: spec.Execute,
	})
	require.NoError(t, err)
	rt := s.runtime(nil, whole, byHand, s.put("put"))
	shown := func(c perm.ClientFacts) (*agent.Session, []string) {
		ses, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(c))
		require.NoError(t, err)
		tools, err := ses.Tools(ctx)
		require.NoError(t, err)
		var names []string
		for _, tl := range tools {
			names = append(names, tl.Name())
		}
		return ses, names
	}
	before := s.state()
	ses, names := shown(perm.ClientFacts{Disabled: []string{"more"}})
	require.Equal(t, []string{"by_hand", "put"}, names)
	for name, says := range map[string]string{
		"whole":   "the session does not see the tool: its part more is not for it: it is switched off",
		"by_hand": "part 2, more: denied by grant: the session does not see the tool: it is switched off",
	} {
		out, err := begin(t, ses).Invoke(ctx, name, line{"a", "x"})
		require.ErrorIs(t, err, tool.ErrDenied, name)
		require.Contains(t, out.Error.Why, says)
		require.Equal(t, before, s.state())
		_, err = ses.Revert(ctx, out.Txn, revert.Options{})
		require.NoError(t, err)
	}

	ses, names = shown(perm.ClientFacts{Disabled: []string{"others"}, Selected: []string{"whole"}})
	require.Equal(t, []string{"whole"}, names)
	_, err = begin(t, ses).Invoke(ctx, "whole", line{"a", "x"})
	require.NoError(t, err, "the control: who selects the whole selects its parts")
	require.NotEqual(t, before, s.state())
}

// TestAConditionThatTurns checks that a call that the policy authorized as pure
// has no effect, even if its condition changes later.
func TestAConditionThatTurns(t *testing.T) {
	s := newShop(t)
	asked, ran := 0, false
	fires, err := tool.CreateTyped("fires", "Fires.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
		ran = true
		return in, nil
	}, tool.Effect(effect.Pivot))
	require.NoError(t, err)
	turns := func(json.RawMessage) bool {
		asked++
		return asked < 3 // the access and the class of the call are computed before it
	}
	whole, err := compose.Conditional(about, turns, compose.Part{Tool: s.upper("upper")}, compose.Part{Tool: fires})
	require.NoError(t, err)
	out, err := begin(t, session(t, s.runtime(nil, whole))).Invoke(context.Background(), "whole", line{"a", "x"})
	require.ErrorIs(t, err, tool.ErrFailed, "%+v", out)
	require.Equal(t, effect.Pure, out.EffectClass)
	require.Contains(t, out.Error.Why, "its effect is pivot, and the call was decided about as pure")
	require.Equal(t, 3, asked)
	require.False(t, ran)
}

// TestAPartThatEndsItsGoroutine has not come to its end, wherever it runs.
func TestAPartThatEndsItsGoroutine(t *testing.T) {
	leaves, err := tool.CreateTyped("leaves", "Leaves.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
		runtime.Goexit()
		return in, nil
	}, tool.Pure())
	require.NoError(t, err)
	for name, make := range map[string]func(compose.Declaration, ...compose.Part) (tool.Tool, error){"chain": compose.Chain, "parallel": compose.Parallel} {
		s := newShop(t)
		before := s.state()
		whole, err := make(about, compose.Part{Tool: s.put("put")}, compose.Part{Tool: leaves})
		require.NoError(t, err)
		out, err := begin(t, session(t, s.runtime(nil, whole))).Invoke(context.Background(), "whole", line{"a", "x"})
		require.Error(t, err, "%s: %+v", name, out)
		require.Contains(t, out.Error.Why, "ended its goroutine")
		if out.Status == tool.StatusFailed {
			require.Equal(t, before, s.state())
		}
	}
}
