package diff_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

var errFault = errors.New("this operation failed")

// faults fails the n-th operation.
type faults struct{ left, seen int }

func (f *faults) hit() error {
	f.seen++
	if f.left--; f.left == -1 {
		return errFault
	}
	return nil
}

type faulty struct {
	journal.Journal
	*faults
}

func (f faulty) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	if f.hit() == nil {
		return f.Journal.Entries(ctx, q)
	}
	return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, errFault) }
}

func (f faulty) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	if err := f.hit(); err != nil {
		return nil, err
	}
	r, err := f.Journal.OpenContent(ctx, ref)
	return content{r, f.faults}, err
}

type content struct {
	io.ReadCloser
	*faults
}

func (c content) Read(p []byte) (int, error) {
	if err := c.hit(); err != nil {
		return 0, err
	}
	return c.ReadCloser.Read(p)
}

// valueStore is a store of values. A change stores the value that it displaces with
// the journal, and the vault shows both sides.
type valueStore struct {
	values map[string]string
	*faults
}

func (v valueStore) Name() string { return "vault" }

func (v valueStore) token(key string) effect.Token {
	if s, ok := v.values[key]; ok {
		return effect.Token("v:" + s)
	}
	return effect.Absent
}

// change prepares a change, with the content that it displaces.
func (v valueStore) change(ctx context.Context, n int, key string, post effect.Token, keep journal.ContentStore) (effect.Change, []journal.Blob, error) {
	c := effect.Change{N: n, Scheme: "vault", Resource: key, Kind: "write", Pre: v.token(key), Post: post}
	s, ok := v.values[key]
	if !ok {
		return c, nil, nil
	}
	b, err := keep.StoreContent(ctx, strings.NewReader(s))
	c.Blobs = []effect.BlobRef{b.Ref()}
	return c, []journal.Blob{b}, err
}

func (v valueStore) set(key string, t effect.Token) {
	if t == effect.Absent {
		delete(v.values, key)
		return
	}
	v.values[key] = string(t[2:])
}

func (v valueStore) Settle(_ context.Context, c effect.Change) (effect.Token, error) {
	return v.token(c.Resource), nil
}

func (v valueStore) Plan(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (steps []effect.Step, blobs []journal.Blob, err error) {
	for _, c := range slices.Backward(changes) {
		s := effect.Step{Of: []int{c.N}, Plan: effect.Conflict, Change: effect.Change{Scheme: "vault", Resource: c.Resource}}
		if v.token(c.Resource).Same(c.Post) {
			change, kept, err := v.change(ctx, 0, c.Resource, c.Pre, keep)
			if err != nil {
				return nil, nil, err
			}
			s.Plan, s.Change, blobs = effect.Restored, change, append(blobs, kept...)
		}
		steps = append(steps, s)
	}
	return steps, blobs, nil
}

func (v valueStore) Apply(_ context.Context, s effect.Step, _ journal.ContentStore) effect.Result {
	v.set(s.Change.Resource, s.Change.Post)
	return effect.Result{Resource: s.Change.Resource, Outcome: effect.Restored}
}

func resourceVersion(t effect.Token) diff.ResourceVersion {
	if t == effect.Absent {
		return diff.ResourceVersion{Token: t}
	}
	return diff.ResourceVersion{Token: t, Type: "file", Mode: "0644", Digest: string(canon.SumBytes([]byte(t[2:])))}
}

func (v valueStore) View(c effect.Change) (before, after diff.ResourceVersion, err error) {
	before, after = resourceVersion(c.Pre), resourceVersion(c.Post)
	if len(c.Blobs) > 0 {
		before.Kept = &c.Blobs[0]
	}
	return before, after, v.hit()
}

func (v valueStore) Now(_ context.Context, key string) (diff.ResourceVersion, error) {
	s := resourceVersion(v.token(key))
	if s.Exists() {
		s.Kept = &effect.BlobRef{Digest: s.Digest, Size: int64(len(v.values[key]))}
	}
	return s, v.hit()
}

func (v valueStore) Open(_ context.Context, key string) (io.ReadCloser, error) {
	if err := v.hit(); err != nil {
		return nil, err
	}
	return content{io.NopCloser(strings.NewReader(v.values[key])), v.faults}, nil
}

// testEnv is a vault with a journal, and the IDs to show.
type testEnv struct {
	vault   valueStore
	journal journal.Journal
	ids     []string
}

// call records a call that changes values, up to its end.
func (r *testEnv) call(t *testing.T, rec revert.Recorder, id, confinement string, values map[string]string, end record.Body) {
	t.Helper()
	started := &record.Started{Class: effect.Reversible, Confinement: confinement, Key: id, Tool: record.ToolRef{Name: "put"}, Input: json.RawMessage(`{}`), Decision: json.RawMessage(`{}`)}
	w := revert.Write{Records: []revert.CallRecord{{Call: id, Body: started}}}
	for i, key := range slices.Sorted(maps.Keys(values)) {
		ch, kept, err := r.vault.change(t.Context(), i+1, key, effect.Token("v:"+values[key]), r.journal)
		require.NoError(t, err)
		w.Records, w.Blobs = append(w.Records, revert.CallRecord{Call: id, Body: &record.Changed{Change: ch}}), append(w.Blobs, kept...)
		r.vault.set(key, ch.Post)
	}
	w.Records = append(w.Records, revert.CallRecord{Call: id, Body: end})
	require.NoError(t, rec.Write(t.Context(), w))
}

func (r *testEnv) begin(t *testing.T, h host.Host, id string) revert.Recorder {
	t.Helper()
	rec := revert.NewRecorder(r.journal, h, "s_1").In(id)
	require.NoError(t, rec.Write(t.Context(), revert.Write{
		Take:    journal.OwnerChange{To: journal.Ownership{Txn: id, Owner: r.journal.Owner()}},
		Records: []revert.CallRecord{{Body: &record.Begun{Owner: r.journal.Owner()}}},
	}))
	return rec
}

func done() record.Body { return &record.Done{Output: json.RawMessage("null")} }

// newTestEnv returns a room with transactions of each sort.
func newTestEnv(t *testing.T) *testEnv {
	ctx, h := t.Context(), hosttest.New(1)
	r := &testEnv{vault: valueStore{map[string]string{"a": "old\n", "b": "two\n"}, &faults{left: -1}}, journal: journal.Memory()}
	rv := &revert.Reverter{Journal: r.journal, Host: h, EnvironmentFor: r.environment}
	first := r.begin(t, h, "t_first")
	r.call(t, first, "c_1", "handles", map[string]string{"a": "new\n", "c": "three\n"}, done())
	r.call(t, first, "c_2", "trusted", map[string]string{"a": "newer\n"}, done())
	r.call(t, first, "c_3", "handles", map[string]string{"b": "two\n"}, done()) // nothing
	r.call(t, first, "c_4", "handles", map[string]string{"d": "lost\n"}, &record.Failed{Status: "failed", Proof: "no_effect"})
	delete(r.vault.values, "d")
	require.NoError(t, first.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &record.Committed{}}}, End: true}))
	later := r.begin(t, h, "t_later")
	r.call(t, later, "c_5", "handles", map[string]string{"b": "other\n"}, done())
	items, err := rv.RevertCall(ctx, later, "c_5", "failed")
	require.NoError(t, err)
	require.Equal(t, effect.Restored, items[0].Outcome)
	r.call(t, later, "c_6", "handles", map[string]string{"c": "four\n"}, done())
	r.vault.values["c"] = "foreign\n"
	r.call(t, later, "c_7", "handles", map[string]string{"c": "five\n"}, done())
	require.NoError(t, later.Write(ctx, revert.Write{Records: []revert.CallRecord{{Body: &record.Committed{}}}, End: true}))
	rep, err := rv.Revert(ctx, "c_2", revert.Options{})
	require.NoError(t, err)
	again, err := rv.Redo(ctx, rep.RevertTxn, "kim")
	require.NoError(t, err)
	r.ids = []string{"t_first", "t_later", "c_1", "c_2", rep.RevertTxn, again.RevertTxn}
	for e, err := range r.journal.Entries(ctx, journal.Query{Txn: rep.RevertTxn, Kinds: []record.Kind{record.KindReverting}}) {
		require.NoError(t, err)
		r.ids = append(r.ids, e.Header.Call)
	}
	require.Len(t, r.ids, 7)
	return r
}

func (r *testEnv) environment(context.Context, string) (revert.Environment, error) {
	if err := r.vault.hit(); err != nil {
		return revert.Environment{}, err
	}
	return revert.Environment{Schemes: []revert.Scheme{r.vault}}, nil
}

// shown returns the diff and its texts.
func (r *testEnv) shown(ctx context.Context, id string) (d diff.Diff, texts []diff.Text, err error) {
	d, err = diff.Source{Journal: faulty{r.journal, r.vault.faults}, EnvironmentFor: r.environment}.Of(ctx, id)
	for _, delta := range d.Deltas {
		text, terr := delta.Text(ctx, strings.TrimPrefix(delta.Resource, "/"))
		err = errors.Join(err, terr)
		texts = append(texts, text)
	}
	return d, texts, err
}

// TestOneFailureOfADiff checks that each failing operation is reported,
// or that the unreadable content is reported lost. Wrong lines are never shown.
func TestOneFailureOfADiff(t *testing.T) {
	r := newTestEnv(t)
	for _, id := range r.ids {
		*r.vault.faults = faults{left: -1}
		clean, want, err := r.shown(t.Context(), id)
		require.NoError(t, err)
		require.NotEmpty(t, want, id)
		for n := range r.vault.seen {
			*r.vault.faults = faults{left: n}
			d, texts, err := r.shown(t.Context(), id)
			if err != nil {
				require.ErrorIs(t, err, errFault, "%s, operation %d", id, n)
				continue
			}
			require.Len(t, texts, len(want), "%s, operation %d", id, n)
			require.Equal(t, clean.Untracked, d.Untracked)
			for i := range texts {
				require.True(t, texts[i] == want[i] || texts[i].Lost != "", "%s, operation %d: %+v", id, n, texts[i])
			}
		}
	}
}

// TestDifferences checks the shown lines. Content that another actor overwrote
// is lost.
func TestDifferences(t *testing.T) {
	r := newTestEnv(t)
	want := map[string]string{
		"t_first": "a -old +newer; c +three", "c_1": "a -old +new; c +three", "c_2": "a -new +newer",
		"t_later": "c; c -foreign +five",
		r.ids[4]:  "a -newer +new", r.ids[5]: "a -new +newer", r.ids[6]: "a -newer +new",
	}
	for _, id := range r.ids {
		d, texts, err := r.shown(t.Context(), id)
		require.NoError(t, err)
		var seen []string
		for i, text := range texts {
			line := d.Deltas[i].Resource
			for _, l := range strings.Split(text.Patch, "\n")[1:] {
				if (strings.HasPrefix(l, "-") || strings.HasPrefix(l, "+")) && !strings.HasPrefix(l[1:], string(l[0])) {
					line += " " + l
				}
			}
			seen = append(seen, line)
		}
		require.Equal(t, want[id], strings.Join(seen, "; "), id)
	}
	d, _, err := r.shown(t.Context(), "t_first")
	require.NoError(t, err)
	require.Equal(t, []diff.UntrackedCall{{Call: "c_2", Tool: "put", Class: effect.Reversible}}, d.Untracked)
	_, err = diff.Source{Journal: r.journal, EnvironmentFor: r.environment}.Of(t.Context(), "t_none")
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.ErrorContains(t, err, "transaction or call t_none")
}

// TestDifferenceWithoutAViewer checks that, without a Viewer, the diff has
// the versions, and names erased calls.
func TestDifferenceWithoutAViewer(t *testing.T) {
	r := newTestEnv(t)
	s := diff.Source{Journal: r.journal, EnvironmentFor: func(context.Context, string) (revert.Environment, error) { return revert.Environment{}, nil }}
	d, err := s.Of(t.Context(), "t_first")
	require.NoError(t, err)
	require.Equal(t, effect.Token("v:old\n"), d.Deltas[0].Before.Token)
	require.Equal(t, diff.ResourceVersion{Token: effect.Absent}, d.Deltas[1].Before)
	_, err = d.Deltas[0].After.Open(t.Context())
	require.ErrorIs(t, err, diff.ErrContentGone)

	rv := &revert.Reverter{Journal: r.journal, Host: hosttest.New(2), EnvironmentFor: r.environment}
	_, err = rv.Erase(t.Context(), "c_2", record.Erased{By: "kim", Why: "asked for"})
	require.NoError(t, err)
	for i, id := range r.ids {
		d, texts, err := r.shown(t.Context(), id)
		require.NoError(t, err, id)
		require.Equal(t, slices.Contains([]int{0, 3, 4, 5, 6}, i), len(d.Erased) == 1, "%s: %v", id, d.Erased)
		for _, text := range texts {
			require.NotContains(t, fmt.Sprint(text), "newer", "its content is gone, but for what is there now")
		}
	}
}
