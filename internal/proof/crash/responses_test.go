package crash_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// TestReportedIsDurable checks that a power failure does not remove the result of a call
// that a client knows, or a label for data that the session may have seen.
func TestReportedIsDurable(t *testing.T) {
	think := func(t *testing.T, _ *agent.Runtime, s *agent.Session) tool.Status {
		return asked(t, s, "think")
	}
	for name, tt := range map[string]struct {
		decision perm.Effect
		details  perm.Details
		do       func(*testing.T, *agent.Runtime, *agent.Session) tool.Status
		want     tool.Status
		on       record.Kind // kind of the record with the result
	}{
		"a result": {perm.Allow, perm.Details{}, func(t *testing.T, _ *agent.Runtime, s *agent.Session) tool.Status {
			return asked(t, s, "broken")
		}, tool.StatusFailed, record.KindFailed},
		"a denial":   {perm.Deny, perm.Details{}, think, tool.StatusDenied, record.KindDenied},
		"a question": {perm.Ask, perm.Details{}, think, tool.StatusPending, record.KindAsked},
		"a label":    {perm.Allow, perm.Details{Labels: []string{"seen"}}, think, tool.StatusDone, record.KindLabelled},
		"a call that is held": {perm.Hold, perm.Details{}, func(t *testing.T, _ *agent.Runtime, s *agent.Session) tool.Status {
			return asked(t, s, "mail")
		}, tool.StatusHeld, record.KindHeld},
		"a call that is not released": {perm.Hold, perm.Details{}, notReleased, tool.StatusDenied, record.KindFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimState()
			w.lives++
			asks := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
				tt.details.Reasons = []perm.Reason{{Text: "so it is"}}
				return perm.NewDecision(tt.decision, tt.details), nil
			})
			rt, err := agent.New(
				agent.Host(&machine{disk: w.disk, random: rand.New(rand.NewPCG(1, 7)), now: startTime}), agent.Journal(w.journal.Open()), agent.Log(slog.New(slog.DiscardHandler)),
				agent.Policy(asks), agent.Tools(tools...), agent.Root("workspace", "/sim"), agent.SuspendForApproval(),
			)
			require.NoError(t, err)
			s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
			require.NoError(t, err)
			require.Equal(t, tt.want, tt.do(t, rt, s))
			require.NoError(t, rt.Close())
			w.journal.Cut(w.journal.Pending())
			for _, err := range w.journal.Open().Entries(t.Context(), journal.Query{Kinds: []record.Kind{tt.on}}) {
				require.NoError(t, err)
				return
			}
			require.Fail(t, "a power cut takes it away")
		})
	}
}

// asked calls a tool.
func asked(t *testing.T, s *agent.Session, name string) tool.Status {
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	out, _ := tx.Invoke(t.Context(), name, "x")
	return out.Status
}

// notReleased commits a call that was held under a revoked grant.
func notReleased(t *testing.T, rt *agent.Runtime, s *agent.Session) tool.Status {
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	out, err := tx.Invoke(t.Context(), "mail", "x")
	require.NoError(t, err)
	require.Equal(t, tool.StatusHeld, out.Status)
	require.NoError(t, rt.Revoke(t.Context(), s.ID(), "boss", "enough"))
	require.ErrorIs(t, tx.Commit(t.Context()), agent.ErrNotReleased)
	return tx.Released()[0].Status
}
