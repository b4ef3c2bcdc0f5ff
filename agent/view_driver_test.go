package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// elsewhere is a driver with a world of its own.
type elsewhere struct{ name string }

func (elsewhere) Schemes() []revert.Scheme { return nil }
func init() {
	handleaccess.InstallView(func(driver any) (handleaccess.DriverView, bool) {
		e, ok := driver.(elsewhere)
		return handleaccess.DriverView{Kinds: []perm.Kind{perm.KindHTTPS}, View: func([]effect.Change) verify.ResourceView { return e }}, ok
	})
}

func (e elsewhere) Version(context.Context, string) (string, error) { return e.name, nil }

func (e elsewhere) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(e.name)), nil
}

func (e elsewhere) Before(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("not kept by " + e.name)
}

// TestWorldsOfDrivers: a verifier looks at a resource in the world of its kind, of the
// first driver that has one, and at files as ever. One call may be milder than its
// tool, for who decides and for the record.
func TestWorldsOfDrivers(t *testing.T) {
	looks := 0
	looking, err := tool.FromSpec(tool.Spec{
		Name: "look", Description: "Looks.", EffectClass: effect.Pivot, Confinement: tool.Handles,
		Input: json.RawMessage(`{"type":"object","properties":{"mild":{"type":"string"}}}`),
		ClassOf: func(in json.RawMessage) effect.Class {
			switch {
			case strings.Contains(string(in), "panic"):
				panic("no")
			case strings.Contains(string(in), "odd"):
				return "odd"
			case strings.Contains(string(in), "yes"):
				return effect.Pure
			}
			return ""
		},
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("ok"), nil
		},
		Verify: func(ctx context.Context, s verify.Subject) verify.Verdict {
			looks++
			version, err := s.Resources.Version(ctx, "https://a.example/x")
			require.NoError(t, err)
			require.Equal(t, "first", version)
			r, err := s.Resources.Open(ctx, "https://a.example/x")
			require.NoError(t, err)
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, "first", string(text))
			_, err = s.Resources.Before(ctx, "https://a.example/x")
			require.ErrorContains(t, err, "not kept by first")
			_, err = s.Resources.Version(ctx, "file://workspace/x")
			require.Error(t, err, "the call named no file")
			return verify.Applied()
		},
	})
	require.NoError(t, err)
	var classes []string
	policy := perm.EngineFunc(func(ctx context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeRun {
			classes = append(classes, r.Call.EffectClass)
		}
		return allowAll().Decide(ctx, r)
	})
	rt := newRuntime(t, agent.Tools(looking), agent.Policy(policy), agent.Driver(elsewhere{"first"}), agent.Driver(elsewhere{"second"}))
	tx := begin(t, newSession(t, rt))
	for _, mild := range []string{"yes", "no", "panic", "odd"} {
		out, err := tx.Invoke(t.Context(), "look", tool.Args{"mild": mild})
		require.NoError(t, err)
		classes = append(classes, string(out.EffectClass))
	}
	require.Equal(t, []string{"pure", "pure", "pivot", "pivot", "pivot", "pivot", "pivot", "pivot"}, classes)
	require.Equal(t, 4, looks)
}
