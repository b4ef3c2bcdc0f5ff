package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// store is a journal that is opened by one process after the other.
type store struct {
	mem    journal.Journal
	mu     sync.Mutex // never held across a wait
	living map[string]bool
	opened int
}

func newStore() *store { return &store{mem: journal.Memory(), living: map[string]bool{}} }

// open is an opening whose Append fails where fails says so.
func (s *store) open(fails func(journal.Batch) bool) *opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	o := &opening{Journal: s.mem, store: s, owner: fmt.Sprint("process ", s.opened), fails: fails}
	s.living[o.owner] = true
	return o
}

type opening struct {
	journal.Journal
	store *store
	owner string
	fails func(journal.Batch) bool
}

func (o *opening) Owner() string { return o.owner }

func (o *opening) Alive(_ context.Context, owner string) (bool, error) {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	return o.store.living[owner], nil
}

func (o *opening) Append(ctx context.Context, b journal.Batch) error {
	o.store.mu.Lock()
	fail := o.fails != nil && o.fails(b)
	o.store.mu.Unlock()
	if fail {
		return errDisk
	}
	return o.Journal.Append(ctx, b)
}

func (o *opening) Close() error {
	o.store.mu.Lock()
	defer o.store.mu.Unlock()
	delete(o.store.living, o.owner)
	return nil
}

var errDisk = errors.New("the disk is full")

func holdsKind(b journal.Batch, k record.Kind) bool {
	return slices.ContainsFunc(b.Entries, func(e record.Entry) bool { return e.Header.Kind == k })
}

// nth fails at the n-th of the batches that match, and at all later ones too
// where it is stuck. The function says whether it has failed.
func nth(n int, stuck bool, match func(journal.Batch) bool) (fails func(journal.Batch) bool, failed func() bool) {
	seen, hit := 0, false
	return func(b journal.Batch) bool {
		if hit {
			return stuck
		}
		if match(b) {
			seen++
		}
		hit = seen == n
		return hit
	}, func() bool { return hit }
}

func everything(journal.Batch) bool { return true }

func ofKind(k record.Kind) func(journal.Batch) bool {
	return func(b journal.Batch) bool { return holdsKind(b, k) }
}

// till is a service outside the runtime: what was booked there by which call, and
// by which keys it was given back.
type till struct {
	mu     sync.Mutex // never held across a wait
	booked map[string]int
	given  map[string][]string
}

func newTill() *till { return &till{booked: map[string]int{}, given: map[string][]string{}} }

func (b *till) tool(t *testing.T) tool.Tool {
	tl, err := tool.CreateWith("pay", "", nil, func(_ context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.booked[tc.Call().Key]++
		return "paid", nil
	}, tool.Effect(effect.Compensable), tool.RevertWith("1", func(_ context.Context, rc tool.RevertContext) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.given[rc.Key] = append(b.given[rc.Key], rc.RevertKey)
		return nil
	}))
	return mustTool(t, tl, err)
}

// sweepTools are tools that end each in another way.
func sweepTools(t *testing.T, b *till) []tool.Tool {
	fails, err := tool.CreateWith("fails", "", anyWrite(), puts("b.txt", returns("", errors.New("boom"))), confined()...)
	require.NoError(t, err)
	wrong, err := tool.CreateWith("wrong", "", anyWrite(), puts("w.txt", returns("", nil)), append(confined(), says(verify.Absent()))...)
	require.NoError(t, err)
	pure, err := tool.Create("pure", "", func(context.Context, string) (string, error) { return "p", nil }, tool.Pure())
	require.NoError(t, err)
	return append(builtin.Files(), fails, wrong, pure, b.tool(t))
}

// work is a transaction that meets every kind of record, and its end.
func work(t *testing.T, s *agent.Session, j journal.Journal, commit bool) (txn string) {
	ctx := t.Context()
	tx, err := s.Begin(ctx)
	if err != nil {
		return ""
	}
	call := func(name string, input any) {
		out, err := tx.Invoke(ctx, name, input)
		require.Equal(t, out.Status.OK(), err == nil)
		if out.Status.OK() {
			_, c, err := revert.LoadCall(ctx, j, out.Call)
			require.NoError(t, err)
			require.NotNil(t, c.Done, "%s is shown as done", name)
		}
	}
	call("file_write", tool.Args{"path": "a.txt", "content": "new"})
	call("pay", "x")
	call("pure", "x")
	call("fails", "x")
	call("wrong", "x")
	call("file_write", tool.Args{"path": "../x", "content": "x"})
	_ = tx.Savepoint(ctx, "here")
	call("file_edit", tool.Args{"path": "a.txt", "old": "new", "new": "newer"})
	call("pay", "y")
	_, _ = tx.RevertTo(ctx, "here")
	call("file_delete", tool.Args{"path": "sub/c.txt"})
	if commit {
		err = tx.Commit(ctx)
	} else {
		_, err = tx.Revert(ctx, revert.Options{})
	}
	loaded, lerr := revert.Load(ctx, j, tx.ID())
	if err == nil {
		require.NoError(t, lerr)
		require.NotEqual(t, revert.TxnOpen, loaded.State())
	}
	return tx.ID()
}

// TestJournalFailsAtEachAppend: whichever record cannot be written, once or from
// then on, nothing is shown that is not on the journal, and the next process
// brings everything back to what it was.
func TestJournalFailsAtEachAppend(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // no power is lost here, so nothing need last
	}
	for _, commit := range []bool{true, false} {
		last := 1
		for ; sweep(t, last, commit, false); last += statcheck.Stride(1) {
			require.Less(t, last, 100)
		}
		require.Greater(t, last, 25)
		for n := 1; n < last; n += statcheck.Stride(3) { // to the next process each is like a death there
			require.True(t, sweep(t, n, commit, true))
		}
	}
}

func sweep(t *testing.T, n int, commit, stuck bool) (hit bool) {
	ctx, at := t.Context(), fmt.Sprintf("append %d, commit %v, stuck %v", n, commit, stuck)
	dir, s, b := workspace(t), newStore(), newTill()
	before, tools := tree(t, dir), sweepTools(t, b)
	fails, failed := nth(n, stuck, everything)
	j := s.open(fails)
	rt := newRuntime(t, agent.Tools(tools...), agent.Root("workspace", dir), agent.Journal(j), agent.Policy(allowAll()))
	session, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		require.True(t, failed(), at)
		return true
	}
	id := work(t, session, s.mem, commit)
	require.NoError(t, j.Close())

	next := newRuntime(t, agent.Tools(tools...), agent.Root("workspace", dir), agent.Journal(s.open(nil)), agent.Policy(allowAll()))
	_, err = next.Recover(ctx)
	require.NoError(t, err, at)
	if id == "" {
		return true
	}
	txn, err := revert.Load(ctx, s.mem, id)
	require.NoError(t, err, at)
	if txn.End == "" {
		require.Empty(t, txn.InFlight(), at)
	}
	rep, err := next.Revert(ctx, id, revert.Options{})
	if err != nil {
		require.ErrorIs(t, err, agent.ErrPartialRevert, at)
	}
	require.Equal(t, before, tree(t, dir), "%s: %+v", at, rep)
	open, err := s.mem.Unfinished(ctx)
	require.NoError(t, err)
	require.Empty(t, open, at)
	for key, times := range b.booked {
		require.Equal(t, 1, times, at)
		require.False(t, rep.State == revert.TxnReverted && b.given[key] == nil, "%s: %+v", at, rep)
	}
	for key, keys := range b.given {
		require.Contains(t, b.booked, key, at)
		require.Len(t, slices.Compact(keys), 1, "%s: each attempt has the same key", at)
	}
	return failed()
}

// TestRecordThatIsMissing: where the end of a call could not be written its
// transaction is good for nothing but to be reverted.
func TestRecordThatIsMissing(t *testing.T) {
	for _, tc := range []struct {
		name string
		run  execute
		opts []tool.Option
		kind record.Kind
		want revert.TxnState
	}{
		{"result, confined", puts("a.txt", returns("ok", nil)), confined(), record.KindDone, revert.TxnReverted},
		{"result, trusted", returns("ok", nil), []tool.Option{tool.Effect(effect.Pivot)}, record.KindDone, revert.TxnRevertedPartial},
		{"failure, confined", puts("a.txt", returns("", errors.New("boom"))), confined(), record.KindFailed, revert.TxnReverted},
		{"failure, trusted", returns("", tool.NoEffect(errors.New("boom"))), []tool.Option{tool.Effect(effect.Pivot)}, record.KindFailed, revert.TxnRevertedPartial},
		{"verdict", puts("a.txt", returns("ok", nil)), append(confined(), says(verify.Applied())), record.KindVerified, revert.TxnReverted},
		{"start", returns("ok", nil), []tool.Option{tool.Effect(effect.Pivot)}, record.KindStarted, revert.TxnReverted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, dir := t.Context(), workspace(t)
			before := tree(t, dir)
			fails, _ := nth(1, false, ofKind(tc.kind))
			tl, err := tool.CreateWith("probe", "", anyWrite(), tc.run, tc.opts...)
			rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)), agent.Root("workspace", dir), agent.Journal(newStore().open(fails)), agent.Policy(allowAll()))
			tx := begin(t, newSession(t, rt))
			require.NoError(t, tx.Savepoint(ctx, "here"))
			_, err = tx.Invoke(ctx, "probe", "in")
			require.Error(t, err)
			for range 2 { // the journal works again, and that changes nothing
				_, err = tx.Invoke(ctx, "probe", "in")
				require.ErrorIs(t, err, agent.ErrTxnEnded)
				_, err = tx.RevertTo(ctx, "here")
				require.ErrorIs(t, err, agent.ErrTxnEnded)
				require.ErrorIs(t, tx.Savepoint(ctx, "there"), agent.ErrTxnEnded)
				require.ErrorIs(t, tx.Commit(ctx), agent.ErrTxnEnded)
			}
			rep, _ := tx.Revert(ctx, revert.Options{})
			require.Equal(t, tc.want, rep.State, "%+v", rep)
			require.Equal(t, before, tree(t, dir))
		})
	}
}

// TestRevertThatStoppedHalfWay: after it the transaction can only be reverted,
// and is.
func TestRevertThatStoppedHalfWay(t *testing.T) {
	ctx, dir := t.Context(), workspace(t)
	before := tree(t, dir)
	fails, _ := nth(2, false, ofKind(record.KindReverting))
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Journal(newStore().open(fails)))
	tx := begin(t, newSession(t, rt))
	change(t, tx)
	rep, err := tx.Revert(ctx, revert.Options{})
	require.ErrorIs(t, err, errDisk)
	require.False(t, rep.Complete())
	_, err = tx.Invoke(ctx, "file_read", tool.Args{"path": "a.txt"})
	require.ErrorIs(t, err, agent.ErrTxnEnded)
	require.ErrorIs(t, tx.Commit(ctx), agent.ErrTxnEnded)
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, tree(t, dir))
}

// TestNoChangeOnTopOfAnUnknownOne: a call that had begun when the result of another one
// was lost changes nothing any more. What the other one came to is told from the version
// that it left, and would be told wrongly from the version after a change of that.
func TestNoChangeOnTopOfAnUnknownOne(t *testing.T) {
	ctx, dir := t.Context(), workspace(t)
	before := tree(t, dir)
	begun, goes := make(chan struct{}), make(chan struct{})
	first, err := tool.CreateWith("first", "", anyWrite(), puts("new.txt", returns("", nil)), confined()...)
	require.NoError(t, err)
	second, err := tool.CreateWith("second", "", append(anyWrite(), perm.Access(perm.Delete, "file://workspace/**")), func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		close(begun)
		<-goes
		f, err := handle.Open(tc, "workspace")
		require.NoError(t, err)
		return "", f.Delete(ctx, "new.txt")
	}, confined()...)
	require.NoError(t, err)
	fails, _ := nth(1, false, ofKind(record.KindDone))
	rt := newRuntime(t, agent.Tools(first, second), agent.Root("workspace", dir), agent.Journal(newStore().open(fails)), agent.Policy(allowAll()))
	tx := begin(t, newSession(t, rt))
	ended := make(chan error)
	go func() {
		_, err := tx.Invoke(ctx, "second", "")
		ended <- err
	}()
	<-begun
	_, err = tx.Invoke(ctx, "first", "text")
	require.ErrorIs(t, err, tool.ErrUnknown)
	close(goes)
	require.ErrorContains(t, <-ended, "the journal does not hold all that the transaction did")
	rep, err := tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, before, tree(t, dir))
}
