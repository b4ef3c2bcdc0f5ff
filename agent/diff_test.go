package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func patchOf(t *testing.T, d diff.Diff) string {
	var b strings.Builder
	for _, delta := range d.Deltas {
		text, err := delta.Text(context.Background(), strings.TrimPrefix(delta.Resource, "file://workspace/"))
		require.NoError(t, err)
		require.Empty(t, text.Lost)
		b.WriteString(text.Patch)
	}
	return b.String()
}

// contents is a tree without folders and times, which no patch tells of.
func contents(t *testing.T, dir string) map[string]string {
	m := map[string]string{}
	for name, text := range tree(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		m[name] = text[:10] + " " + string(data)
	}
	return m
}

// TestDiffIsAPatch compares with git: applied to what was there before, the patch
// of a random transaction gives what it left, also once it was reverted; and that
// of its undo the reverse.
func TestDiffIsAPatch(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not here to compare with")
	}
	apply := func(t *testing.T, dir, patch string) {
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "--unsafe-paths", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", out, patch)
	}
	ctx := context.Background()
	texts := []string{"", "one\n", "one\ntwo\n", "two\none", "one\r\ntwo\r\n", "\n\n", strings.Repeat("line\n", 30) + "end", "\\ no\n--- a\n+++ b\n"}
	compared := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		dir := t.TempDir()
		names := []string{"a.txt", "b b.txt", "d/c.txt", "d/\"q\".txt"}
		require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
		for _, n := range names[:2] {
			require.NoError(t, os.WriteFile(filepath.Join(dir, n), []byte(texts[r.IntN(len(texts))]), 0o644))
		}
		before := contents(t, dir)
		rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Policy(allowAll()), agent.Root("workspace", dir))
		s := newSession(t, rt)
		tx := begin(t, s)
		for range 1 + r.IntN(6) {
			n := names[r.IntN(len(names))]
			switch r.IntN(4) {
			case 0:
				_, _ = tx.Invoke(ctx, "file_delete", tool.Args{"path": n}) // it may not be there
			case 1:
				_, _ = tx.Invoke(ctx, "file_write", tool.Args{"path": n, "content": texts[r.IntN(len(texts))], "mode": "0755"})
			default:
				_, _ = tx.Invoke(ctx, "file_write", tool.Args{"path": n, "content": texts[r.IntN(len(texts))]})
			}
		}
		require.NoError(t, tx.Commit(ctx))
		after := contents(t, dir)
		d, err := s.Diff(ctx, tx.ID())
		require.NoError(t, err)
		patch := patchOf(t, d)
		rep, err := s.Revert(ctx, tx.ID(), revert.Options{})
		require.NoError(t, err)
		require.Equal(t, before, contents(t, dir))
		d, err = rt.Diff(ctx, tx.ID())
		require.NoError(t, err)
		require.Equal(t, patch, patchOf(t, d), "seed %d: the same once it was reverted", seed)
		// Resources percent-encode their segments; git does not.
		patch = strings.NewReplacer("%20", " ", "%22", `\"`).Replace(patch)
		if fmt.Sprint(before) == fmt.Sprint(after) {
			require.Empty(t, patch)
			continue
		}
		compared++
		if strings.Contains(patch, `\"`) { // a name in quotes
			continue
		}
		apply(t, dir, patch)
		require.Equal(t, after, contents(t, dir), "seed %d\n%s", seed, patch)
		back, err := rt.Diff(ctx, rep.RevertTxn)
		require.NoError(t, err)
		apply(t, dir, strings.ReplaceAll(patchOf(t, back), "%20", " "))
		require.Equal(t, before, contents(t, dir), "seed %d", seed)
	}
	require.Greater(t, compared, 20)
}

// TestDiffIsOfTheSession: a session sees what it did, and nothing of others.
func TestDiffIsOfTheSession(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)))
	s, other := newSession(t, rt), newSession(t, rt)
	tx := begin(t, s)
	out := invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "new"})
	for _, id := range []string{tx.ID(), out.Call} {
		d, err := s.Diff(ctx, id)
		require.NoError(t, err)
		require.Len(t, d.Deltas, 1)
		_, err = other.Diff(ctx, id)
		require.ErrorIs(t, err, journal.ErrNotFound)
	}
	_, err := rt.Diff(ctx, "t_none")
	require.ErrorIs(t, err, journal.ErrNotFound)
}

// TestDiffTellsForeignWorkApart checks that the diff of a call does not contain
// the change that another writer made between two calls.
func TestDiffTellsForeignWorkApart(t *testing.T) {
	ctx := context.Background()
	dir := workspace(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("once\n"), 0o640)) // a merge needs only what differs
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	tx := begin(t, newSession(t, rt))
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "one\n"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("theirs\n"), 0o640))
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "two\n"})
	d, err := rt.Diff(ctx, tx.ID())
	require.NoError(t, err)
	require.Len(t, d.Deltas, 2)
	second, err := d.Deltas[1].Text(ctx, "a.txt")
	require.NoError(t, err)
	require.Contains(t, second.Patch, "-theirs\n+two\n")
	first, err := d.Deltas[0].Text(ctx, "a.txt")
	require.NoError(t, err)
	require.Contains(t, first.Lost, "was not stored", "the journal has no copy of the overwritten version")
}
