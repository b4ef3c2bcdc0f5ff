package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// lampTool is a tool outside handles, of one version, that says which version runs and
// which one reverts.
func lampTool(t *testing.T, said *[]string, version, undo, description string) tool.Tool {
	tl, err := tool.Create("lamp", description, func(_ context.Context, in string) (string, error) {
		*said = append(*said, "run "+version+" "+in)
		return version, nil
	}, tool.Effect(effect.Compensable), tool.RevertWith(undo, func(_ context.Context, rc tool.RevertContext) error {
		*said = append(*said, "undo "+version+" "+description)
		return nil
	}), func(s *tool.Spec) { s.Version = version })
	return mustTool(t, tl, err)
}

// TestVersionsSideBySide: a call runs the version that it names, the newest where it
// names none, and is undone by the one that made it.
func TestVersionsSideBySide(t *testing.T) {
	ctx := context.Background()
	var said []string
	rt := newRuntime(t, agent.Policy(allowAll()),
		agent.Tools(lampTool(t, &said, "1.9.0", "a", "old"), lampTool(t, &said, "1.10.0", "a", "new"), lampTool(t, &said, "0.1.0", "b", "first")))
	s := newSession(t, rt)
	shown, err := s.Tools(ctx)
	require.NoError(t, err)
	require.Len(t, shown, 1)
	require.Equal(t, "lamp@1.10.0", shown[0].QualifiedName())
	tx := begin(t, s)
	for _, name := range []string{"lamp", "lamp@1.9.0", "lamp@0.1.0"} {
		out, err := tx.Invoke(ctx, name, name)
		require.NoError(t, err)
		require.Equal(t, "lamp", out.Tool)
	}
	out, err := tx.Invoke(ctx, "lamp@2", "x")
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.Equal(t, `tool "lamp" has no version "2"; valid are 1.10.0, 1.9.0, 0.1.0, or no version for the newest`, out.Error.Why)
	plain := newRuntime(t, agent.Policy(allowAll()), agent.Tools(lampTool(t, &said, "spring", "a", ""), lampTool(t, &said, "autumn", "a", "")))
	out, err = begin(t, newSession(t, plain)).Invoke(ctx, "lamp@winter", "x")
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.Contains(t, out.Error.Why, "valid are autumn, spring, or", "the last one given is the newest")
	require.Equal(t, []string{"run 1.10.0 lamp", "run 1.9.0 lamp@1.9.0", "run 0.1.0 lamp@0.1.0"}, said)
	said = nil
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"undo 0.1.0 first", "undo 1.9.0 old", "undo 1.10.0 new"}, said)
}

// TestPolicyNamesAVersion: the published input has the version, and a rule about one
// does not touch the other.
func TestPolicyNamesAVersion(t *testing.T) {
	ctx := context.Background()
	var said []string
	e := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
allow contains "the one that was looked at" if { input.tool.name == "lamp"; input.tool.version == "1.0.0" }`}})
	rt := newRuntime(t, agent.Policy(e), agent.Tools(lampTool(t, &said, "1.0.0", "a", "old"), lampTool(t, &said, "2.0.0", "a", "new")))
	tx := begin(t, newSession(t, rt))
	_, err := tx.Invoke(ctx, "lamp", "x")
	require.ErrorIs(t, err, tool.ErrDenied)
	_, err = tx.Invoke(ctx, "lamp@1.0.0", "x")
	require.NoError(t, err)
}

func TestAnOutcomeSaysOnceThatItsToolIsDeprecated(t *testing.T) {
	ctx := context.Background()
	old, err := tool.Create("look", "Looks.", func(_ context.Context, in string) (string, error) {
		if in == "fail" {
			return "", tool.NoEffect(errors.New("no light"))
		}
		return "seen", nil
	}, tool.Pure(), func(s *tool.Spec) { s.Deprecated, s.Version = "use see", "1" })
	rt := newRuntime(t, agent.Policy(allowAll()), agent.Tools(mustTool(t, old, err)))
	tx := begin(t, newSession(t, rt))
	first, err := tx.Invoke(ctx, "look", "x", agent.WithCallID("1"))
	require.NoError(t, err)
	require.Equal(t, "seen\nTool look@1 is deprecated: use see.", first.Text)
	again, err := tx.Invoke(ctx, "look", "x", agent.WithCallID("1"))
	require.NoError(t, err)
	require.Equal(t, first.Text, again.Text)
	failed, err := tx.Invoke(ctx, "look", "fail")
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Equal(t, 1, strings.Count(failed.Text, "is deprecated"))
}

// TestOtherToolsInTheirPlace: calls see the new tools, a running call its own, sessions
// keep their grant, and calls of a tool that is gone are undone by it.
func TestOtherToolsInTheirPlace(t *testing.T) {
	ctx := context.Background()
	var said []string
	rt := newRuntime(t, agent.Policy(allowAll()), agent.Tools(lampTool(t, &said, "1", "a", "old")))
	s := newSession(t, rt)
	tx := begin(t, s)
	_, err := tx.Invoke(ctx, "lamp", "x")
	require.NoError(t, err)

	require.ErrorContains(t, rt.SetTools(lampTool(t, &said, "2", "a", "new"), tool.Tool{}), "zero Tool")
	require.Equal(t, []string{"lamp"}, rt.Tools().Names(), "the old ones stay")
	require.Equal(t, "1", rt.Tools().Versions("lamp")[0].Spec().Version)

	wide, err := tool.CreateWith("wide", "Wants more.", []perm.ResourceAccess{perm.Access(perm.Use, "secret://x")},
		func(context.Context, ctxperm.ToolContext, string) (string, error) { return "", nil }, tool.Pure())
	require.NoError(t, err)
	require.NoError(t, rt.SetTools(wide))
	out, err := tx.Invoke(ctx, "wide", "x")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Equal(t, "grant", out.Stage)
	require.False(t, s.Allows(perm.Access(perm.Use, "secret://x")))
	require.True(t, newSession(t, rt).Allows(perm.Access(perm.Use, "secret://x")), "the control")
	_, err = tx.Invoke(ctx, "lamp", "x")
	require.ErrorIs(t, err, tool.ErrInvalid, "it is gone")

	require.NoError(t, rt.SetTools(lampTool(t, &said, "3", "b", "another")))
	said = nil
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"undo 1 old"}, said, "by the tool that made it")
}

// TestAWithheldToolTakesNobodysPlace checks that the runtime does not keep a
// disabled tool. It reverts a call with the tool that made it.
func TestAWithheldToolTakesNobodysPlace(t *testing.T) {
	ctx := context.Background()
	var said []string
	rt := newRuntime(t, agent.Policy(allowAll()), agent.Tools(lampTool(t, &said, "1", "a", "old")))
	tx := begin(t, newSession(t, rt))
	_, err := tx.Invoke(ctx, "lamp", "x")
	require.NoError(t, err)
	other, err := lampTool(t, &said, "1", "a", "new").Modify(func(s *tool.Spec) { s.DisabledReason = "nobody has looked at it" })
	require.NoError(t, err)
	require.NoError(t, rt.SetTools(other))
	require.NoError(t, rt.SetTools())
	said = nil
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"undo 1 old"}, said)
}

// TestARunningCallKeepsItsTool: tools are put in the place of others while a call runs.
func TestARunningCallKeepsItsTool(t *testing.T) {
	ctx := context.Background()
	var rt *agent.Runtime
	make := func(say string) tool.Tool {
		tl, err := tool.Create("swap", "Puts another in its own place, and says "+say, func(context.Context, string) (string, error) {
			var none []tool.Tool
			return say, rt.SetTools(none...)
		}, tool.Pure())
		return mustTool(t, tl, err)
	}
	rt = newRuntime(t, agent.Policy(allowAll()), agent.Tools(make("first")))
	tx := begin(t, newSession(t, rt))
	out, err := tx.Invoke(ctx, "swap", "x")
	require.NoError(t, err)
	require.Equal(t, "first", out.Text)
	_, err = tx.Invoke(ctx, "swap", "x")
	require.ErrorIs(t, err, tool.ErrInvalid)
}

// TestAnApprovalIsOfOneDeclaration checks that an approval does not count after
// the declaration of the tool changed. This includes remembered approvals.
func TestAnApprovalIsOfOneDeclaration(t *testing.T) {
	ctx := context.Background()
	asks := mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": "package remit\nask contains \"look\"\n"}})
	for name, change := range map[string]string{"as it was": "old", "another description": "new"} {
		t.Run(name, func(t *testing.T) {
			var said []string
			rt := newRuntime(t, agent.Policy(asks), agent.SuspendForApproval(), agent.Tools(lampTool(t, &said, "1", "a", "old")))
			tx := begin(t, newSession(t, rt))
			out, err := tx.Invoke(ctx, "lamp", "x")
			require.ErrorIs(t, err, tool.ErrPending)
			_, err = rt.RememberApproval(ctx, agent.Answer{Call: out.Call, Approved: true, By: "kim"}, ctxperm.RememberScope{Always: true})
			require.NoError(t, err)
			require.NoError(t, rt.SetTools(lampTool(t, &said, "1", "a", change)))
			same := change == "old"
			resumed, err := tx.Resume(ctx, out.Call)
			require.Equal(t, same, err == nil, "%+v", resumed.Error)
			if !same {
				require.ErrorIs(t, err, tool.ErrDenied)
				require.Contains(t, resumed.Error.Why, "the tool, the policy or the input has changed since")
			}
			_, err = tx.Invoke(ctx, "lamp", "x")
			require.Equal(t, same, err == nil, "the approval that was remembered")
		})
	}
}
