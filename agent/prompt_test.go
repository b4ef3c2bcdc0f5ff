package agent_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// promptsSeen is a policy that allows everything and keeps the prompts that it
// saw, by purpose.
type promptsSeen struct {
	mu   sync.Mutex
	seen map[perm.Purpose][]*perm.PromptFacts
}

func (p *promptsSeen) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[r.Purpose] = append(p.seen[r.Purpose], r.Call.Prompt)
	return perm.NewDecision(perm.Allow, perm.Details{}), nil
}

// only returns the one prompt that the policy saw with a purpose.
func (p *promptsSeen) only(t *testing.T, purpose perm.Purpose) *perm.PromptFacts {
	t.Helper()
	require.NotEmpty(t, p.seen[purpose])
	for _, other := range p.seen[purpose] {
		require.Equal(t, p.seen[purpose][0], other)
	}
	return p.seen[purpose][0]
}

// TestPromptOfATransaction checks that journal and policy have the prompt: for
// the calls, for those of a nested transaction, after another runtime took the
// transaction over, and for a revert.
func TestPromptOfATransaction(t *testing.T) {
	ctx, dir, state := t.Context(), workspace(t), t.TempDir()
	saw := &promptsSeen{seen: map[perm.Purpose][]*perm.PromptFacts{}}
	open := func() (*agent.Runtime, journal.Journal) {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		return newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(j), agent.Policy(saw)), j
	}
	rt, j := open()
	s := newSession(t, rt)
	token := s.Token()
	tx, err := s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "claude-code", ID: "p-1", Text: "\n Fix the\ttests,\r\n please \u202e now\x1b[31m"}))
	require.NoError(t, err)
	want := &perm.PromptFacts{Client: "claude-code", ID: "p-1", Text: "Fix the tests, please now[31m"}
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "one"})
	nested, err := tx.BeginNested(ctx, s)
	require.NoError(t, err)
	invoke(t, nested, "file_write", tool.Args{"path": "b.txt", "content": "two"})
	require.NoError(t, nested.Commit(ctx))
	require.Equal(t, want, saw.only(t, perm.PurposeRun))
	require.NoError(t, j.Close())

	rt, j = open()
	tx, err = rt.ResumeTxn(ctx, tx.ID())
	require.NoError(t, err)
	invoke(t, tx, "file_write", tool.Args{"path": "new.txt", "content": "three"})
	require.Equal(t, want, saw.only(t, perm.PurposeRun))
	require.NoError(t, tx.Commit(ctx))
	loaded, err := revert.Load(ctx, j, tx.ID())
	require.NoError(t, err)
	require.Equal(t, want.Text, loaded.Prompt.Text)
	require.Equal(t, []string{"claude-code", "p-1"}, []string{loaded.Prompt.Client, loaded.Prompt.ID})

	s, err = rt.ResumeSession(ctx, token)
	require.NoError(t, err)
	_, err = s.Revert(ctx, tx.ID(), revert.Options{Permit: s.MayRevert})
	require.NoError(t, err)
	require.Equal(t, want, saw.only(t, perm.PurposeRevert))
	require.NoError(t, j.Close())
}

// TestPromptIsBounded checks the bounds of a prompt, and that a transaction
// without one has none.
func TestPromptIsBounded(t *testing.T) {
	ctx := t.Context()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)))
	s := newSession(t, rt)
	for _, p := range []agent.Prompt{{Client: "c"}, {ID: "i"}, {Client: "c", ID: "a b"}, {Client: "c", ID: "a\n"}, {Client: "c", ID: strings.Repeat("i", 129)}, {Client: "ü", ID: "i"}} {
		_, err := s.Begin(ctx, agent.ForPrompt(p))
		require.ErrorIs(t, err, tool.ErrInvalid)
	}
	for text, want := range map[string]string{
		"":                          "",
		"\x00\u200b\u2066 \xff":     "",
		strings.Repeat("ä", 500):    strings.Repeat("ä", 100),
		strings.Repeat("abc ", 100): strings.TrimSpace(strings.Repeat("abc ", 50)),
	} {
		tx, err := s.Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "c", ID: "i", Text: text}))
		require.NoError(t, err)
		require.NoError(t, tx.Commit(ctx))
		p, err := revert.PromptOf(ctx, rt.Journal(), tx.ID())
		require.NoError(t, err)
		require.Equal(t, want, p.Text)
		require.LessOrEqual(t, len(p.Text), 200)
		require.True(t, utf8.ValidString(p.Text))
	}
	tx := begin(t, s)
	require.NoError(t, tx.Commit(ctx))
	p, err := revert.PromptOf(ctx, rt.Journal(), tx.ID())
	require.NoError(t, err)
	require.Nil(t, p)
}

// TestErasedPrompt checks that the words go with the first call that a person
// erases, and that the journal stays whole.
func TestErasedPrompt(t *testing.T) {
	ctx, state := t.Context(), t.TempDir()
	j, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)), agent.Journal(j))
	tx, err := newSession(t, rt).Begin(ctx, agent.ForPrompt(agent.Prompt{Client: "c", ID: "i", Text: "the secret is 4711"}))
	require.NoError(t, err)
	first := invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "4711"}).Call
	second := invoke(t, tx, "file_write", tool.Args{"path": "b.txt", "content": "other"}).Call
	require.NoError(t, tx.Commit(ctx))
	for _, call := range []string{first, first, second} {
		_, err = rt.Erase(ctx, call, "ann", "a secret")
		require.NoError(t, err)
		loaded, err := revert.Load(ctx, j, tx.ID())
		require.NoError(t, err)
		require.True(t, loaded.Prompt.Erased)
		require.Empty(t, loaded.Prompt.Text)
		require.Equal(t, "i", loaded.Prompt.ID, "the prompt can still be named")
	}
	rep, err := revert.Fsck(ctx, j, revert.FsckOptions{})
	require.NoError(t, err)
	require.Empty(t, rep.Problems)
	for e, err := range j.Entries(ctx, journal.Query{}) {
		require.NoError(t, err)
		require.NotContains(t, string(e.Body), "4711")
	}
	require.NoError(t, j.Close())
}
