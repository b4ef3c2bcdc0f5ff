package agentcorpus_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/proof/agentcorpus"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// waits reports whether a call waits for a person in a session, and its ID. The
// tool itself does not run: no client uses it.
func (j *judge) waits(s *agent.Session, repo string, args map[string]any, corpusTool string) (call string, waits bool, as hooks.Preview) {
	j.t.Helper()
	c, ok := hooks.Find(args["client"].(string)) //nolint:errcheck // of the corpus
	require.True(j.t, ok)
	dir := path.Join(home, "src", repo)
	e := hooks.Event{Moment: hooks.BeforeTool, Session: "s", Tool: args["tool"].(string), Dir: dir, Input: input(j.t, corpusTool, dir, args)} //nolint:errcheck // of the corpus
	as, err := c.Preview(j.t.Context(), s, e, dir, true)
	if err != nil {
		return "", false, hooks.Preview{Tool: as.Tool, Effect: perm.Deny}
	}
	if as.Effect != perm.Ask {
		return "", false, as
	}
	tx, err := s.Begin(j.t.Context())
	require.NoError(j.t, err)
	out, err := tx.Invoke(j.t.Context(), as.Tool, tool.Args(as.Args))
	if out.Status == tool.StatusPending {
		require.ErrorIs(j.t, err, tool.ErrPending)
		return out.Call, true, as
	}
	require.NotEqual(j.t, tool.StatusDenied, out.Status)
	require.NoError(j.t, tx.Commit(j.t.Context()))
	return out.Call, false, as
}

// yes approves a call as a person does.
func (j *judge) yes(call string) {
	j.t.Helper()
	require.NoError(j.t, j.runtime.Answer(j.t.Context(), agent.Answer{Call: call, Approved: true, By: "dev"}))
}

func (j *judge) newSession() *agent.Session {
	j.t.Helper()
	s, err := j.runtime.Session(j.t.Context(), perm.Principal{ID: "claude-code"})
	require.NoError(j.t, err)
	return s
}

// TestHonestPromptsWithMemory counts the prompts that a person sees if what they
// answered once is not asked again in the same session.
func TestHonestPromptsWithMemory(t *testing.T) {
	calls, err := agentcorpus.Honest()
	require.NoError(t, err)
	j := newJudge(t)
	sessions := map[string]*agent.Session{}
	var halves [2]count
	for _, c := range calls {
		h, s := half(c.Session), sessions[c.Session]
		halves[h].calls++
		if s == nil {
			s = j.newSession()
			sessions[c.Session] = s
		}
		switch call, waits, as := j.waits(s, c.Repo, c.Args, c.Tool); {
		case waits:
			halves[h].prompts++
			j.yes(call)
		case as.Effect == perm.Ask:
			t.Logf("%s is covered by an earlier answer: %s", c.ID, text(c.Args))
		}
	}
	for h, c := range halves {
		t.Logf("half %d: %d calls, %d prompts with memory (%.1f of 100)", h+1, c.calls, c.prompts, c.per100(c.prompts))
		require.LessOrEqual(t, c.prompts, most[h].prompts, "half %d", h+1)
	}
}

// TestHostileAfterEachHonestAnswer plays the hostile calls in a session in which
// a person has approved every honest call of the corpus that asked, of all
// sessions together. None of these answers lets one through.
func TestHostileAfterEachHonestAnswer(t *testing.T) {
	honest, err := agentcorpus.Honest()
	require.NoError(t, err)
	hostile, err := agentcorpus.Hostile()
	require.NoError(t, err)
	j := newJudge(t)
	s := j.newSession()
	for _, c := range honest {
		if call, waits, _ := j.waits(s, c.Repo, c.Args, c.Tool); waits {
			j.yes(call)
		}
	}
	granted, err := j.runtime.Grants(t.Context())
	require.NoError(t, err)
	for _, g := range granted {
		t.Logf("remembered: %q", g.Keys)
	}
	require.NotEmpty(t, granted)
	asked := 0
	for _, c := range hostile {
		_, waits, as := j.waits(s, "cobra", c.Args, c.Tool)
		if waits {
			asked++
			continue
		}
		require.NotEqual(t, perm.Ask, as.Effect, "%s was let through by a remembered answer", c.ID)
		if as.Effect != perm.Deny {
			require.Equal(t, "client_shell", as.Tool, "%s runs unasked outside the sandbox", c.ID)
		}
	}
	t.Logf("%d hostile calls, %d asked about", len(hostile), asked)
}
