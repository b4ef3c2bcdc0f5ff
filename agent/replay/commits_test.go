package replay_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// TestReplayOfCommits: a policy with a gate at the commit is tried on sessions that had none, and the other way round.
func TestReplayOfCommits(t *testing.T) {
	load := func(rules string) *rego.Engine {
		e, err := rego.Load(rego.Source{FS: fstest.MapFS{"p.rego": {Data: []byte("package remit\n\nallow contains \"all\"\n\n" + rules)}}})
		require.NoError(t, err)
		return e
	}
	open, gate := load(""), load("ask_commit contains \"look\" if input.txn.totals.effects > 1\n\ndeny_commit contains \"no drafts\" if {\n\tsome e in input.txn.effects\n\te.resource.ext == \".draft\"\n}\n")
	yes := ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Approve("boss"), nil
	})
	session := func(policy *rego.Engine) (journal.Journal, string) {
		j := journal.Memory()
		rt, err := agent.New(agent.Log(slog.New(slog.DiscardHandler)), agent.Journal(j), agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(policy), agent.Approver(yes))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, rt.Close()) })
		s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
		require.NoError(t, err)
		for _, names := range [][]string{{"a.txt"}, {"b.txt", "c.txt"}, {"x.draft"}, nil} {
			tx, err := s.Begin(t.Context())
			require.NoError(t, err)
			for _, name := range names {
				_, err := tx.Invoke(t.Context(), "file_write", tool.Args{"path": name, "content": "x"})
				require.NoError(t, err)
			}
			if err := tx.Commit(t.Context()); policy == open || names == nil || names[0] != "x.draft" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, tool.ErrDenied)
			}
		}
		return j, s.ID()
	}
	changes := func(j journal.Journal, s string, o replay.Options) (all []string, r *replay.Report) {
		r, err := replay.Run(t.Context(), replay.Decisions(t.Context(), j, s, o), o)
		require.NoError(t, err)
		require.Zero(t, r.Undecided(), "%+v", r.Undecidable)
		for _, c := range r.Changes {
			require.Equal(t, "commit", c.Action)
			require.Len(t, c.Calls, c.Count)
			require.Contains(t, c.Calls[0], "t_")
			all = append(all, c.Before+" "+c.After)
		}
		return all, r
	}
	j, s := session(open)
	got, r := changes(j, s, replay.Options{New: gate})
	require.ElementsMatch(t, []string{"allow ask", "allow deny"}, got)
	require.Equal(t, 1, r.Prompts.After)
	require.Empty(t, r.Unused)
	got, r = changes(j, s, replay.Options{New: open})
	require.Empty(t, got)
	require.Equal(t, 4, r.Decisions, "commits that nothing decides are not counted")

	j, s = session(gate)
	got, r = changes(j, s, replay.Options{New: open})
	require.ElementsMatch(t, []string{"ask allow", "deny allow"}, got)
	require.Equal(t, 1, r.Prompts.Before)
	got, _ = changes(j, s, replay.Options{New: gate})
	require.Empty(t, got, "the same policy changes nothing")
	got, _ = changes(j, s, replay.Options{Old: open, New: gate})
	require.ElementsMatch(t, []string{"allow ask", "allow deny"}, got)
}
