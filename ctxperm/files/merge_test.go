package files_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/mergecheck"
	"github.com/remit-dev/remit/internal/proof/randtext"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

type act = func(ctx context.Context, f *files.Files) error

// calls runs each action as a call of the transaction, with a step of another
// process after each.
func (w *testEnv) calls(steps ...func()) {
	w.t.Helper()
	for _, step := range steps {
		step()
	}
	require.NoError(w.t, revert.NewRecorder(w.journal, w.host(), "s_1").In(txn).Write(w.t.Context(), revert.Write{
		Records: []revert.CallRecord{{Body: &record.Committed{}}}, End: true, Durable: true,
	}))
}

// called returns a step that runs an action as a call. The first one begins the
// transaction.
func (w *testEnv) called(do act) func() {
	return func() {
		w.t.Helper()
		h := w.host()
		c := w.call(h)
		if _, err := revert.Load(w.t.Context(), w.journal, txn); err != nil {
			c = w.begin(h)
		}
		require.NoError(w.t, do(w.t.Context(), w.files(c)))
		require.NoError(w.t, c.Close(w.t.Context()))
		lines := append(c.Start(), revert.CallRecord{Call: c.Config().ID, Body: &record.Done{Output: []byte("null"), Posts: c.Posts()}})
		require.NoError(w.t, c.Config().Recorder.Write(w.t.Context(), revert.Write{Records: lines, Durable: true}))
	}
}

func edits(old, replacement string) act {
	return func(ctx context.Context, f *files.Files) error { return f.Edit(ctx, "a.txt", old, replacement, true) }
}

func writes(text string) act {
	return func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, "a.txt", []byte(text), files.WriteOptions{})
	}
}

func chmods(mode os.FileMode) act {
	return func(ctx context.Context, f *files.Files) error { return f.Chmod(ctx, "a.txt", mode) }
}

const five = "one\ntwo\nthree\nfour\nfive\n"

// TestMerge checks which files a revert merges, and that it keeps the rest as
// they are.
func TestMerge(t *testing.T) {
	mode := func(m os.FileMode) func(w *testEnv) {
		return func(w *testEnv) { require.NoError(w.t, os.Chmod(filepath.Join(w.dir, "a.txt"), m)) }
	}
	text := func(s string) func(w *testEnv) {
		return func(w *testEnv) { w.put("a.txt", s, 0o640) }
	}
	replaced := func(old, by string) func(w *testEnv) {
		return func(w *testEnv) {
			info, err := os.Stat(filepath.Join(w.dir, "a.txt"))
			require.NoError(w.t, err)
			w.put("a.txt", strings.Replace(w.read("a.txt"), old, by, 1), info.Mode().Perm())
		}
	}
	large := five + strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name, before string
		calls        []act
		then         []func(w *testEnv) // after each call
		want         string             // "": a conflict
		mode         os.FileMode        // 0: 0640
		already      bool
		says         string
	}{
		{name: "another line", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five", "mine")}, want: "one\ntwo\nthree\nfour\nmine\n"},
		{name: "a whole write", calls: []act{writes("ONE\ntwo\nthree\nfour\nFIVE\n")}, then: []func(*testEnv){replaced("three", "mine")}, want: "one\ntwo\nmine\nfour\nfive\n"},
		{name: "two calls", calls: []act{edits("one", "ONE"), edits("three", "THREE")}, then: []func(*testEnv){nil, replaced("five", "mine")}, want: "one\ntwo\nthree\nfour\nmine\n"},
		{name: "two calls at one line", calls: []act{edits("one", "ONE"), edits("ONE", "First")}, then: []func(*testEnv){nil, replaced("five", "mine")}, want: "one\ntwo\nthree\nfour\nmine\n"},
		{name: "between two calls", calls: []act{edits("one", "ONE"), edits("three", "THREE")}, then: []func(*testEnv){replaced("five", "mine"), nil}, want: "one\ntwo\nthree\nfour\nmine\n"},
		{name: "after each of two calls", calls: []act{edits("one", "ONE"), edits("three", "THREE")}, then: []func(*testEnv){replaced("five", "mine"), replaced("mine", "mine too")}, want: "one\ntwo\nthree\nfour\nmine too\n"},
		{name: "CRLF", before: strings.ReplaceAll(five, "\n", "\r\n"), calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five", "mine")}, want: "one\r\ntwo\r\nthree\r\nfour\r\nmine\r\n"},
		{name: "no last line end", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five\n", "five")}, want: "one\ntwo\nthree\nfour\nfive"},
		{name: "no UTF-8", before: "\xff\n" + five, calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("\xff", "\xfe")}, want: "\xfe\n" + five},
		{name: "the person changed the mode", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){mode(0o600)}, want: five, mode: 0o600},
		{name: "the person made it executable", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){mode(0o750)}, want: five, mode: 0o750},
		{name: "the call changed the mode", calls: []act{chmods(0o600)}, then: []func(*testEnv){replaced("five", "mine")}, want: "one\ntwo\nthree\nfour\nmine\n"},
		{name: "both changed the mode", calls: []act{chmods(0o600)}, then: []func(*testEnv){mode(0o644)}, says: "permission bits were changed after the call, from 0600 to 0644"},
		{name: "others may read it now", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){mode(0o644)}, says: "permission bits were changed after the call, from 0640 to 0644"},
		{name: "others may read it now, with other lines", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){func(w *testEnv) { replaced("five", "mine")(w); mode(0o644)(w) }}, says: "would give others access"},
		{name: "both changed the mode and lines", calls: []act{chmods(0o600)}, then: []func(*testEnv){func(w *testEnv) { replaced("five", "mine")(w); mode(0o644)(w) }}, says: "the call and then another process changed its permission bits"},
		{name: "nothing is left", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){text("one\ntwo\nthree\nfour\nmine\n")}, want: "one\ntwo\nthree\nfour\nmine\n", already: true},
		{name: "the same line", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("TWO", "mine")}, says: "lines of the call, or lines beside them: line 2"},
		{name: "the next line", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("three", "mine")}, says: "lines of the call, or lines beside them: lines 2 to 3"},
		{name: "one of two calls", calls: []act{edits("one", "ONE"), edits("five", "FIVE")}, then: []func(*testEnv){nil, replaced("FIVE", "mine")}, says: "lines of the call"},
		{name: "all lines", calls: []act{writes("new\n")}, then: []func(*testEnv){text("mine\n")}, says: "line 1"},
		{name: "a zero byte before", before: "\x00" + five, calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five", "mine")}, says: "content differs"},
		{name: "a zero byte now", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five", "\x00")}, says: "content differs"},
		{name: "too large before", before: large, calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five", "mine")}, says: "content differs"},
		{name: "too large now", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){text(strings.Replace(large, "two", "TWO", 1))}, says: "content differs"},
		{name: "too much between", before: strings.Repeat("a line\n", 20_000), calls: []act{edits("a line", "lines")}, then: []func(*testEnv){replaced("lines", "mine")}, says: "content differs"},
		{name: "large", before: five + strings.Repeat("a line\n", 20_000), calls: []act{edits("two", "TWO")}, then: []func(*testEnv){replaced("five", "mine")}, want: "one\ntwo\nthree\nfour\nmine\n" + strings.Repeat("a line\n", 20_000)},
		{name: "several names", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){func(w *testEnv) {
			require.NoError(w.t, os.Link(filepath.Join(w.dir, "a.txt"), filepath.Join(w.dir, "other")))
			replaced("five", "mine")(w)
		}}, says: "content differs"},
		{name: "deleted", calls: []act{edits("two", "TWO")}, then: []func(*testEnv){func(w *testEnv) { require.NoError(w.t, os.Remove(filepath.Join(w.dir, "a.txt"))) }}, says: "was deleted"},
		{name: "deleted by the call", calls: []act{func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "a.txt") }}, then: []func(*testEnv){text("mine\n")}, says: "created it again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newTestEnv(t)
			before := tt.before
			if before == "" {
				before = five
			}
			w.put("a.txt", before, 0o640)
			var steps []func()
			for i, do := range tt.calls {
				steps = append(steps, w.called(do))
				if tt.then[i] != nil {
					steps = append(steps, func() { tt.then[i](w) })
				}
			}
			w.calls(steps...)
			theirs := w.tree()

			preview, err := w.reverter(w.host()).Preview(t.Context(), txn, revert.Options{Overlaps: true})
			require.NoError(t, err)
			require.Equal(t, theirs, w.tree())
			rep, err := w.reverter(w.host()).Revert(t.Context(), txn, revert.Options{Overlaps: true})
			require.NoError(t, err)
			rep = rep.PerResource()
			require.Len(t, rep.Items, 1)
			require.Len(t, preview.Items, 1)
			require.Equal(t, rep.Items[0].Outcome, preview.Items[0].Outcome)
			if tt.want == "" {
				require.Equal(t, effect.Conflict, rep.Items[0].Outcome)
				require.Contains(t, rep.Items[0].Why, tt.says)
				require.Contains(t, preview.Items[0].Why, tt.says)
				require.Equal(t, revert.TxnRevertedPartial, rep.State)
				require.Equal(t, strings.Contains(tt.says, "line"), len(rep.Items[0].Overlaps) > 0)
				require.Equal(t, theirs, w.tree())
				return
			}
			want := effect.Merged
			if tt.already {
				want = effect.Already
			}
			require.Equal(t, want, rep.Items[0].Outcome, rep.Items[0].Why)
			require.Equal(t, revert.TxnReverted, rep.State)
			require.Equal(t, tt.want, w.read("a.txt"))
			if tt.mode == 0 {
				tt.mode = 0o640
			}
			require.Equal(t, tt.mode, w.tree()["a.txt"].mode)
			if tt.already {
				return
			}
			merged := w.tree()
			w.redo()
			require.Equal(t, theirs, w.tree())
			rep = w.revert().PerResource()
			require.Empty(t, rep.NotReverted())
			require.Equal(t, contents(merged), contents(w.tree()))
		})
	}
}

// contents returns a tree without times: a merged file has that of its write.
func contents(tree map[string]entry) map[string]entry {
	for name, e := range tree {
		e.mtime = time.Time{}
		tree[name] = e
	}
	return tree
}

func (w *testEnv) redo() {
	w.t.Helper()
	rep, err := w.reverter(w.host()).Redo(w.t.Context(), txn, "a person")
	require.NoError(w.t, err)
	require.Empty(w.t, rep.NotReverted())
}

// TestMergeOfRedo checks that a redo keeps what a person changed after the
// revert.
func TestMergeOfRedo(t *testing.T) {
	w := newTestEnv(t)
	w.put("a.txt", five, 0o640)
	w.calls(w.called(edits("two", "TWO")))
	require.Empty(t, w.revert().NotReverted())
	w.put("a.txt", "one\ntwo\nthree\nfour\nmine\n", 0o640)
	rep, err := w.reverter(w.host()).Redo(t.Context(), txn, "a person")
	require.NoError(t, err)
	require.Equal(t, effect.Merged, rep.Items[0].Outcome)
	require.Equal(t, "one\nTWO\nthree\nfour\nmine\n", w.read("a.txt"))
}

// TestNoMerge checks that a merge can be forbidden, and that force still
// overwrites then.
func TestNoMerge(t *testing.T) {
	w := newTestEnv(t)
	w.put("a.txt", five, 0o640)
	w.calls(w.called(edits("two", "TWO")), func() { w.put("a.txt", "one\nTWO\nthree\nfour\nmine\n", 0o640) })
	asked := 0
	for name, how := range map[string]revert.Options{
		"flag": {NoMerge: true},
		"policy": {PermitMerge: func(_ context.Context, c revert.Call, resource string) error {
			asked++
			require.Equal(t, "test", c.Tool.Name)
			require.Equal(t, "file://workspace/a.txt", resource)
			return os.ErrPermission
		}},
	} {
		rep, err := w.reverter(w.host()).Revert(t.Context(), txn, how)
		require.NoError(t, err, name)
		require.Equal(t, effect.Conflict, rep.Items[0].Outcome, name)
		require.Equal(t, "one\nTWO\nthree\nfour\nmine\n", w.read("a.txt"))
		require.Equal(t, name == "policy", strings.Contains(rep.Items[0].Why, os.ErrPermission.Error()))
		preview, err := w.reverter(w.host()).Preview(t.Context(), txn, how)
		require.NoError(t, err)
		require.Equal(t, effect.Conflict, preview.Items[0].Outcome, name)
	}
	require.Equal(t, 2, asked)
	rep, err := w.reverter(w.host()).Revert(t.Context(), txn, revert.Options{NoMerge: true, Force: true, By: "ann"})
	require.NoError(t, err)
	require.True(t, rep.Items[0].Forced)
	require.Equal(t, five, w.read("a.txt"))
}

// TestMergeRandom reverts random edits of an agent after random edits of a
// person. The checker and git judge the file.
func TestMergeRandom(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Parallel()
	dir, merged, conflicts := folder(t), 0, 0
	defer func() { _ = os.RemoveAll(dir) }()
	for seed := range statcheck.Size(150, 10_000) {
		e := randtext.New(uint64(seed))
		if e.Before == e.Left || e.Left == e.Now {
			continue
		}
		w := newTestEnv(t)
		w.put("a.txt", e.Before, 0o640)
		w.calls(w.called(writes(e.Left)), func() { w.put("a.txt", e.Now, 0o640) })
		rep := w.revert()
		require.Len(t, rep.Items, 1)
		m := mergecheck.Merge{Before: e.Before, Left: e.Left, Now: e.Now, Clean: rep.Complete(), Result: w.read("a.txt")}
		_, err := mergecheck.Check(dir, m)
		require.NoError(t, err, "seed %d: %q", seed, m)
		if !rep.Complete() {
			require.Equal(t, effect.Conflict, rep.Items[0].Outcome)
			conflicts++
			w.end()
			continue
		}
		merged++
		if rep.Items[0].Outcome != effect.Already {
			w.redo()
		}
		require.Equal(t, e.Now, w.read("a.txt"))
		w.end()
	}
	t.Logf("%d merged, %d conflicts", merged, conflicts)
	require.Positive(t, merged)
	require.Positive(t, conflicts)
}

// TestCrashOfMerge kills a revert that merges at every point, and the next one
// at some. The file always has what the person wrote.
func TestCrashOfMerge(t *testing.T) {
	t.Parallel()
	const now, want = "one\nTWO\nthree\nTHREE b\nfour\nmine\n", "one\ntwo\nthree\nfour\nmine\n"
	prepare := func() *testEnv {
		w := newTestEnv(t)
		w.put("a.txt", "one\ntwo\nthree\nfour\nfive\n", 0o640)
		w.calls(w.called(edits("two", "TWO")), w.called(edits("three", "three\nTHREE b")), func() { w.put("a.txt", now, 0o640) })
		return w
	}
	die := func(w *testEnv, n int, act func(h *hosttest.Host)) *crash {
		c := &crash{left: n}
		act(c.on(w.host()))
		require.Contains(t, w.read("a.txt"), "mine\n", "died at %v", c.trace)
		return c
	}
	reverts := func(w *testEnv) func(h *hosttest.Host) {
		return func(h *hosttest.Host) { _, _ = w.revertAs(t.Context(), h) }
	}
	redoes := func(w *testEnv) func(h *hosttest.Host) {
		return func(h *hosttest.Host) { _, _ = w.reverter(h).Redo(t.Context(), txn, "a person") }
	}
	states := 0
	for n, first := 1, true; first; n++ {
		for m := 1 + n%5; ; m += statcheck.Stride(5) {
			w := prepare()
			c := die(w, n, reverts(w))
			d := die(w, m, func(h *hosttest.Host) {
				if n%2 == 0 {
					_, _ = w.reverter(h).Recover(t.Context())
					return
				}
				reverts(w)(h)
			})
			rep := w.revert()
			require.Empty(t, rep.NotReverted(), "died at %v, then at %v", c.trace, d.trace)
			require.Equal(t, want, w.read("a.txt"), "died at %v, then at %v", c.trace, d.trace)
			require.Len(t, w.tree(), 1)
			e := die(w, n, redoes(w))
			_, err := w.reverter(w.host()).Recover(t.Context())
			require.NoError(t, err)
			_, err = w.reverter(w.host()).Redo(t.Context(), txn, "a person")
			require.NoError(t, err)
			require.Equal(t, now, w.read("a.txt"), "died at %v, then at %v, and in the redo at %v", c.trace, d.trace, e.trace)
			states++
			w.end()
			if first = c.ended; !d.ended {
				break
			}
		}
	}
	t.Logf("%d states", states)
}

// TestInterferenceInMerge changes the file at every point of a revert that
// merges, and looks at both texts of the person.
func TestInterferenceInMerge(t *testing.T) {
	t.Parallel()
	if probe := newTestEnv(t).root.Features(); !probe.Exchange || !probe.Lease {
		t.Skip("others lose bytes here, as the package says")
	}
	for _, d := range foreignActions() {
		t.Run(d.name, func(t *testing.T) {
			for n, more := 1, true; more; n++ {
				w := newTestEnv(t)
				w.put("a.txt", five, 0o640)
				w.calls(w.called(edits("two", "TWO")), func() { w.put("a.txt", "one\nTWO\nthree\nfour\nmine\n", 0o640) })
				m, h := w.interferer(d, "a.txt", n), w.host()
				h.OnPoint = func(id string) error { m.point(id); return nil }
				_, err := w.revertAs(t.Context(), h)
				require.NoError(t, err)
				w.revert()
				m.end("in a merge")
				more = m.done
				w.end()
			}
		})
	}
}

// TestNoContentOfRedactedCall checks that nothing of the new content is stored
// if the policy redacts a value of the call.
func TestNoContentOfRedactedCall(t *testing.T) {
	for _, hides := range []bool{true, false} {
		w := newTestEnv(t)
		w.put("a.txt", five, 0o640)
		cfg := w.begin(w.host()).Config()
		cfg.HasRedactions = func() bool { return hides }
		c := callstate.New(cfg)
		require.NoError(t, edits("two", "a secret")(t.Context(), w.files(c)))
		require.NoError(t, c.Close(t.Context()))
		changes := c.Changes()
		require.Len(t, changes, 1)
		stored := ""
		for _, ref := range changes[0].Blobs {
			r, err := w.journal.OpenContent(t.Context(), ref)
			require.NoError(t, err)
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			stored += string(data)
		}
		require.NotEqual(t, hides, strings.Contains(stored, "a secret"))
		require.Contains(t, stored, five)
	}
}

// TestMergeOfObservedProgram checks that the changes of an observed program are
// merged too.
func TestMergeOfObservedProgram(t *testing.T) {
	w := newTestEnv(t)
	w.put("a.txt", five, 0o640)
	was, err := w.root.Lstat("a.txt")
	require.NoError(t, err)
	h := w.host()
	w.calls(func() {
		c := w.begin(h)
		w.put("a.txt", "one\nTWO\nthree\nfour\nfive\n", 0o640)
		found := files.NewDetectedChanges(h, w.journal)
		require.NoError(t, fileInternals.Detect(t.Context(), found, "workspace", w.root, []files.FilePreImage{{
			Version: files.Version{Type: "file", Perm: 0o640, Owner: files.Owner(was.Owner)}, Path: "a.txt", Mtime: was.Mtime,
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(five)), nil },
		}}))
		require.NoError(t, fileInternals.Record(t.Context(), found, c))
		require.NoError(t, c.Close(t.Context()))
		lines := append(c.Start(), revert.CallRecord{Call: c.Config().ID, Body: &record.Done{Output: []byte("null"), Posts: c.Posts()}})
		require.NoError(t, c.Config().Recorder.Write(t.Context(), revert.Write{Records: lines, Durable: true}))
	}, func() { w.put("a.txt", "one\nTWO\nthree\nfour\nmine\n", 0o640) })
	rep := w.revert()
	require.Equal(t, effect.Merged, rep.Items[0].Outcome, rep.Items[0].Why)
	require.Equal(t, "one\ntwo\nthree\nfour\nmine\n", w.read("a.txt"))
}
