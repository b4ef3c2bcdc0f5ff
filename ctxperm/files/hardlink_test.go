package files_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
)

// shared groups the names of a tree by their file.
func (w *testEnv) shared(names ...string) (groups [][]string) {
	w.t.Helper()
next:
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(w.dir, name))
		require.NoError(w.t, err)
		for i, group := range groups {
			other, err := os.Lstat(filepath.Join(w.dir, group[0]))
			require.NoError(w.t, err)
			if os.SameFile(info, other) {
				groups[i] = append(group, name)
				continue next
			}
		}
		groups = append(groups, []string{name})
	}
	return groups
}

// TestOtherNames checks a name of a file with several names. It is restored as
// a name of that file or, if the others are gone or changed, as a separate
// file.
func TestOtherNames(t *testing.T) {
	one := [][]string{{"first", "twin", "d/third"}}
	for name, tt := range map[string]struct {
		do      func(ctx context.Context, f *files.Files) error
		foreign func(dir string) error
		want    [][]string
	}{
		"one of them goes":   {do: func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "first") }, want: one},
		"with its directory": {do: func(ctx context.Context, f *files.Files) error { return f.DeleteAll(ctx, "d") }, want: one},
		"one after the other": {do: func(ctx context.Context, f *files.Files) error {
			for _, name := range []string{"first", "twin", "d/third"} {
				if err := f.Delete(ctx, name); err != nil {
					return err
				}
			}
			return nil
		}, want: one},
		"one moves":         {do: func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "twin", "moved") }, want: one},
		"a directory moves": {do: func(ctx context.Context, f *files.Files) error { return f.Move(ctx, "d", "e") }, want: one},
		"the others were changed": {
			do:      func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "first") },
			foreign: func(dir string) error { return os.WriteFile(filepath.Join(dir, "twin"), []byte("theirs"), 0o600) },
			want:    [][]string{{"first"}, {"twin", "d/third"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			w.put("first", "shared", 0o640)
			require.NoError(t, os.Mkdir(filepath.Join(w.dir, "d"), 0o750))
			for _, other := range []string{"twin", "d/third"} {
				require.NoError(t, os.Link(filepath.Join(w.dir, "first"), filepath.Join(w.dir, other)))
			}
			require.Equal(t, one, w.shared("first", "twin", "d/third"))
			before := w.tree()
			require.NoError(t, w.do(w.host(), tt.do))
			require.NotEqual(t, before, w.tree())
			if tt.foreign != nil {
				require.NoError(t, tt.foreign(w.dir))
			}
			left := w.revert().NotReverted()
			require.Equal(t, tt.foreign != nil, len(left) == 1, left)
			if tt.foreign != nil {
				require.Contains(t, left[0].Why, "it is a file of its own: ")
			}
			require.Equal(t, tt.want, w.shared("first", "twin", "d/third"))
			if tt.foreign == nil {
				require.Equal(t, before, w.tree())
			}
			data, err := os.ReadFile(filepath.Join(w.dir, "first"))
			require.NoError(t, err)
			require.Equal(t, "shared", string(data))
		})
	}
}

// TestNamesElsewhere checks the report for a file with names outside of the
// root: the restored file is a different one.
func TestNamesElsewhere(t *testing.T) {
	w := newTestEnv(t)
	outside := w.dir + "-outside"
	w.put("first", "shared", 0o640)
	w.put("second", "also", 0o640)
	require.NoError(t, os.Link(filepath.Join(w.dir, "first"), outside))
	t.Cleanup(func() { _ = os.Remove(outside) })
	require.NoError(t, os.Link(filepath.Join(w.dir, "second"), filepath.Join(w.dir, "third")))
	require.NoError(t, os.Link(filepath.Join(w.dir, "second"), outside+"2"))
	t.Cleanup(func() { _ = os.Remove(outside + "2") })
	before := w.tree()
	require.NoError(t, w.do(w.host(), func(ctx context.Context, f *files.Files) error {
		return errors.Join(f.Delete(ctx, "first"), f.Delete(ctx, "second"))
	}))
	rep := w.revert()
	require.Empty(t, rep.NotReverted())
	require.Equal(t, before, w.tree())
	why := map[string]string{}
	for _, i := range rep.Items {
		why[i.Resource] = i.Why
	}
	require.Contains(t, why["file://workspace/first"], "it has other names outside of the root (1)")
	require.Empty(t, why["file://workspace/second"], "it is a name of the file outside again, by way of the third")
	require.Equal(t, [][]string{{"second", "third"}}, w.shared("second", "third"))
}
