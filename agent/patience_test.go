package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func filesOn(t *testing.T, dir string, opts ...agent.Option) *agent.Runtime {
	return newRuntime(t, append([]agent.Option{agent.Tools(builtin.Files()...), agent.Policy(allowAll()), agent.Root("workspace", dir)}, opts...)...)
}

// TestSecondWriterFailsFast: without patience the holder is named at once.
func TestSecondWriterFailsFast(t *testing.T) {
	dir := workspace(t)
	synctest.Test(t, func(t *testing.T) {
		rt := filesOn(t, dir)
		first, second := begin(t, newSession(t, rt)), begin(t, newSession(t, rt))
		invoke(t, first, "file_write", tool.Args{"path": "a.txt", "content": "first"})
		start := time.Now()
		out, err := second.Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "second"})
		require.ErrorIs(t, err, tool.ErrFailed)
		require.Contains(t, out.Error.Why, "held by transaction "+first.ID())
		require.Zero(t, time.Since(start))
	})
}

// TestSecondWriterWaits: with patience it goes on from what the holder left, by
// commit and by revert, and both can be reverted.
func TestSecondWriterWaits(t *testing.T) {
	for name, end := range map[string]func(*agent.Txn) error{
		"commit": func(tx *agent.Txn) error { return tx.Commit(context.Background()) },
		"revert": func(tx *agent.Txn) error { _, err := tx.Revert(context.Background(), revert.Options{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			before := tree(t, dir)
			synctest.Test(t, func(t *testing.T) {
				rt := filesOn(t, dir)
				s := newSession(t, rt, agent.ClaimTimeout(time.Minute))
				first, second := begin(t, s), begin(t, s)
				invoke(t, first, "file_edit", tool.Args{"path": "a.txt", "old": "alpha", "new": "alpha, first"})
				var out tool.Outcome
				done := make(chan error, 1)
				go func() {
					var err error
					out, err = second.Invoke(t.Context(), "file_edit", tool.Args{"path": "a.txt", "old": "alpha", "new": "alpha, second"})
					done <- err
				}()
				synctest.Wait()
				require.Empty(t, done)
				require.NoError(t, end(first))
				require.NoError(t, <-done)
				require.Equal(t, tool.StatusDone, out.Status)
				data, err := os.ReadFile(filepath.Join(dir, "a.txt"))
				require.NoError(t, err)
				want := map[string]string{"commit": "alpha, second, first", "revert": "alpha, second"}[name]
				require.Equal(t, want, string(data))
				require.NoError(t, second.Commit(t.Context()))
				_, err = s.Revert(t.Context(), second.ID(), revert.Options{})
				require.NoError(t, err)
				_, err = s.Revert(t.Context(), first.ID(), revert.Options{})
				require.NoError(t, err)
			})
			require.Equal(t, before, tree(t, dir))
		})
	}
}

// TestWaitEndsAtTheDeadline: at the deadline the holder is named, and nothing was done.
func TestWaitEndsAtTheDeadline(t *testing.T) {
	dir := workspace(t)
	synctest.Test(t, func(t *testing.T) {
		rt := filesOn(t, dir, agent.Limits(tool.Limits{ClaimTimeout: time.Minute}))
		first, second := begin(t, newSession(t, rt)), begin(t, newSession(t, rt))
		invoke(t, first, "file_write", tool.Args{"path": "a.txt", "content": "first"})
		start := time.Now()
		out, err := second.Invoke(t.Context(), "file_delete", tool.Args{"path": "a.txt"})
		require.ErrorIs(t, err, tool.ErrFailed)
		require.Contains(t, out.Error.Why, "held by transaction "+first.ID())
		require.Contains(t, out.Error.Why, "did not happen within 1m0s")
		require.InDelta(t, time.Minute, time.Since(start), float64(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err = second.Invoke(ctx, "file_delete", tool.Args{"path": "a.txt"})
		require.Error(t, err)
		require.NotEqual(t, tool.StatusDone, out.Status)
		require.Empty(t, out.Changes)
		data, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		require.NoError(t, err)
		require.Equal(t, "first", string(data))
	})
}

// TestWaitsInACircle: two that would wait for each other are not kept until their
// time is up; the one that would close the circle is refused, and the other goes on
// once it has made way.
func TestWaitsInACircle(t *testing.T) {
	dir := workspace(t)
	synctest.Test(t, func(t *testing.T) {
		rt := filesOn(t, dir)
		s := newSession(t, rt, agent.ClaimTimeout(time.Hour))
		first, second := begin(t, s), begin(t, s)
		invoke(t, first, "file_write", tool.Args{"path": "a.txt", "content": "first"})
		invoke(t, second, "file_write", tool.Args{"path": "b.txt", "content": "second"})
		done := make(chan error, 1)
		go func() {
			_, err := first.Invoke(t.Context(), "file_write", tool.Args{"path": "b.txt", "content": "first"})
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		out, err := second.Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "second"})
		require.ErrorIs(t, err, tool.ErrFailed)
		require.Contains(t, out.Error.Why, "neither could go on")
		require.Zero(t, time.Since(start))
		_, err = second.Revert(t.Context(), revert.Options{})
		require.NoError(t, err)
		require.NoError(t, <-done)
		require.NoError(t, first.Commit(t.Context()))
	})
}

// TestWaitsForAnotherProcess: the holder is another opening of the journal.
func TestWaitsForAnotherProcess(t *testing.T) {
	ctx := context.Background()
	dir, state := workspace(t), t.TempDir()
	one, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	defer func() { require.NoError(t, one.Close()) }()
	two, err := sqlite.Open(ctx, state)
	require.NoError(t, err)
	defer func() { require.NoError(t, two.Close()) }()
	first := begin(t, newSession(t, filesOn(t, dir, agent.Journal(one))))
	invoke(t, first, "file_write", tool.Args{"path": "a.txt", "content": "first"})
	waits, once := make(chan struct{}), sync.Once{}
	h := hosttest.New(1)
	h.OnPoint = func(id string) error {
		if id == "line.await" {
			once.Do(func() { close(waits) })
		}
		return nil
	}
	second := begin(t, newSession(t, filesOn(t, dir, agent.Journal(two), agent.Host(h)), agent.ClaimTimeout(time.Minute)))
	done := make(chan error, 1)
	go func() {
		_, err := second.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "second"})
		done <- err
	}()
	<-waits
	require.NoError(t, first.Commit(ctx))
	require.NoError(t, <-done)
	require.NoError(t, second.Commit(ctx))
	found, err := revert.Fsck(ctx, one, revert.FsckOptions{})
	require.NoError(t, err)
	require.Empty(t, found.Problems)
}
