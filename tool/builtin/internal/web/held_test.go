package web_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	builtin "github.com/remit-dev/remit/tool/builtin/internal/web"
)

// holding holds what has no way back, and allows the rest.
func holding() perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Allow
		if r.Call.EffectClass == "pivot" {
			effect = perm.Hold
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), nil
	})
}

// notify is a call with no way back, with the operation key or without.
func notify(t *testing.T, s *service, keyed bool) tool.Tool {
	tl, err := builtin.HTTPCall(builtin.Call{
		Name: "notify", Description: "Tell somebody.", Method: "POST", URL: s.URL + "/items", Keyed: keyed,
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
	})
	require.NoError(t, err)
	return tl
}

// TestHeldRequests are sent when their transaction commits, not before. One whose
// answer is lost goes out again only with a key that the service knows.
func TestHeldRequests(t *testing.T) {
	for name, test := range map[string]struct {
		drop    string
		keyed   bool
		effects string
		asked   int // requests that the service saw
		last    revert.Phase
	}{
		"all is well":               {"", false, "POST POST", 2, revert.PhaseDone},
		"lost, and nobody can tell": {"after", false, "POST POST", 2, revert.PhaseUnknown},
		"lost, with a key":          {"after", true, "POST POST", 3, revert.PhaseDone},
		"not there, with a key":     {"before", true, "POST POST", 3, revert.PhaseDone},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, func(s *service) {
				s.replays = test.keyed
				s.drop = once("POST", test.drop)
			})
			rt := runtimeOf(t, s, agent.Tools(notify(t, s, test.keyed)), agent.Policy(holding()))
			tx := begin(t, rt)
			held := invoke(t, tx, "notify", tool.Args{"name": "a"}, tool.StatusHeld)
			invoke(t, tx, "notify", tool.Args{"name": "b"}, tool.StatusHeld)
			get := invoke(t, tx, "http_fetch", tool.Args{"url": s.URL + "/items/none"}, tool.StatusDone)
			require.Equal(t, effect.Pure, get.EffectClass, "a read waits for nobody")
			require.Empty(t, s.done())
			err := tx.Commit(t.Context())
			if test.drop != "" {
				require.ErrorIs(t, err, agent.ErrNotReleased)
				require.ErrorIs(t, err, tool.ErrUnknown)
				require.LessOrEqual(t, len(strings.Fields(s.done())), 1)
				err = tx.Commit(t.Context())
			}
			require.NoError(t, err)
			require.Equal(t, test.effects, s.done())
			posts := 0
			for _, seen := range s.requests() {
				if seen == "POST /items" {
					posts++
				}
			}
			require.Equal(t, test.asked, posts)
			_, c, err := revert.LoadCall(t.Context(), rt.Journal(), held.Call)
			require.NoError(t, err)
			require.Equal(t, test.last, c.Phase)
			rep, err := rt.Revert(t.Context(), tx.ID(), revert.Options{})
			require.ErrorIs(t, err, agent.ErrPartialRevert, "what was sent stays sent, and is listed")
			require.Len(t, rep.NotReverted(), len(rep.Items))
			_, err = revert.Fsck(t.Context(), rt.Journal(), revert.FsckOptions{})
			require.NoError(t, err)
		})
	}
}
