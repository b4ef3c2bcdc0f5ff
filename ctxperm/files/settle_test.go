package files_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/revert/effect"
)

// stage returns the reserved name that a change uses in the folder of its file.
func stage(t *testing.T, c effect.Change) string {
	t.Helper()
	var way struct {
		Stage string `json:"stage"`
	}
	require.NoError(t, json.Unmarshal(c.Inverse, &way))
	require.True(t, strings.HasPrefix(way.Stage, files.StagePrefix))
	return way.Stage
}

// swapped is one change of a file that was "b" or absent, and becomes "ours" or
// absent.
type swapped struct {
	file string
	do   func(ctx context.Context, f *files.Files) error
}

func write(file string) func(ctx context.Context, f *files.Files) error {
	return func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, file, []byte("ours"), files.WriteOptions{Perm: 0o600})
	}
}

func swaps() map[string]swapped {
	return map[string]swapped{
		"take":    {file: "dir/b.txt", do: func(ctx context.Context, f *files.Files) error { return f.Delete(ctx, "dir/b.txt") }},
		"replace": {file: "dir/b.txt", do: write("dir/b.txt")},
		"put":     {file: "dir/n.txt", do: write("dir/n.txt")},
	}
}

// TestSettle checks that each interrupted swap is settled by the files under
// its stage name and its target, as the table in the code states.
func TestSettle(t *testing.T) {
	if !newTestEnv(t).root.Features().Exchange {
		t.Skip("nothing is exchanged here")
	}
	const none = ""
	for _, tt := range []struct {
		swap, stage, target string // content
		left, saved         string // content of the target, and of a file moved to a visible name
	}{
		{"take", none, theirs, theirs, none},
		{"take", "b", none, none, none},
		{"take", "b", theirs, theirs, none},
		{"take", theirs, none, theirs, none},
		{"take", theirs, "b", "b", theirs},
		{"replace", "b", "ours", "ours", none},
		{"replace", "b", theirs, theirs, none},
		{"replace", "ours", "b", "b", none},
		{"replace", "ours", theirs, theirs, none},
		{"replace", theirs, "ours", theirs, none},
		{"replace", theirs, none, theirs, none},
		{"replace", theirs, "b", "b", theirs},
		{"put", "ours", none, none, "ours"},
		{"put", theirs, "ours", "ours", theirs},
	} {
		s := swaps()[tt.swap]
		w := newTestEnv(t)
		w.createFiles()
		changes := w.changes(s.do)
		require.Len(t, changes, 1)
		for name, text := range map[string]string{filepath.Join("dir", stage(t, changes[0])): tt.stage, s.file: tt.target} {
			_ = os.Remove(filepath.Join(w.dir, name))
			if text != none {
				w.put(name, text, 0o600)
			}
		}
		h := w.host()
		h.OnPoint = func(id string) error {
			if tt.left == tt.target { // it exists throughout
				require.NotEqual(t, "files.exchange", id, "%+v", tt)
			}
			return nil
		}
		_, err := w.schemeOn(h).Settle(t.Context(), changes[0])
		require.NoError(t, err)
		left, saved := none, none
		for name, e := range w.tree() {
			require.NotContains(t, name, files.StagePrefix, "%+v", tt)
			switch {
			case name == s.file:
				left = e.data
			case strings.Contains(name, ".remit-saved-"):
				saved = e.data
			}
		}
		require.Equal(t, tt.left, left, "%+v", tt)
		require.Equal(t, tt.saved, saved, "%+v", tt)
	}
}

// TestSettleOfWhatIsReplaced replaces the staged file with the same bytes while
// it is checked, and continues to write to them.
func TestSettleOfWhatIsReplaced(t *testing.T) {
	w := newTestEnv(t)
	if !w.root.Features().Exchange || !w.root.Features().Lease {
		t.Skip("nothing is exchanged here, or no writer is seen")
	}
	w.createFiles()
	changes := w.changes(swaps()["take"].do)
	staged := filepath.Join("dir", stage(t, changes[0]))
	w.put(staged, "b", 0o600)
	h := w.host()
	var f *os.File
	h.OnPoint = at("files.look", func() {
		w.put("tmp", "b", 0o600)
		require.NoError(t, os.Rename(filepath.Join(w.dir, "tmp"), filepath.Join(w.dir, staged)))
		var err error
		f, err = os.OpenFile(filepath.Join(w.dir, staged), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
	})
	_, err := w.schemeOn(h).Settle(t.Context(), changes[0])
	require.NoError(t, err)
	_, err = f.WriteString(theirs)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.True(t, w.wrote())
}

// TestSettleNonAtomic checks the settling of non-atomic swaps, by the content of
// the target beside a complete draft. A target that is not of another process
// ends as the draft, with its time. An unchanged target keeps its own time.
func TestSettleNonAtomic(t *testing.T) {
	const none, was, ours = "", "b", "b and ours"
	long, lately := time.Date(2020, 2, 3, 4, 5, 6, 789, time.UTC), time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)
	drafted, now := lately.Add(time.Hour), lately.Add(2*time.Hour)
	for _, tt := range []struct {
		file, target, left string
		time               time.Time
		kept               bool // the file itself
	}{
		{"dir/n.txt", none, none, time.Time{}, false},
		{"dir/n.txt", "b an", none, time.Time{}, false},
		{"dir/n.txt", ours, ours, drafted, true},
		{"dir/n.txt", theirs, theirs, now, true},
		{"dir/b.txt", none, ours, drafted, false},
		{"dir/b.txt", "b an", ours, drafted, false},
		{"dir/b.txt", ours, ours, drafted, true},
		{"dir/b.txt", was, was, long, true},
		{"dir/b.txt", theirs, theirs, now, true},
	} {
		w := newTestEnv(t)
		w.createFiles()
		w.root = weakRoot{w.root}
		changes := w.changes(func(ctx context.Context, f *files.Files) error {
			return f.Write(ctx, tt.file, []byte(ours), files.WriteOptions{Perm: 0o600})
		})
		staged, target := filepath.Join("dir", stage(t, changes[0])), filepath.Join(w.dir, tt.file)
		w.put(staged+".weak", none, 0o600)
		w.put(staged+".new", ours, 0o600)
		require.NoError(t, os.Chtimes(filepath.Join(w.dir, staged+".new"), drafted, drafted))
		require.NoError(t, os.Remove(target))
		var before os.FileInfo
		if tt.target != none {
			w.put(tt.file, tt.target, 0o600)
			require.NoError(t, os.Chtimes(target, now, now))
			var err error
			before, err = os.Stat(target)
			require.NoError(t, err)
		}
		_, err := w.scheme().Settle(t.Context(), changes[0])
		require.NoError(t, err)
		for name := range w.tree() {
			require.NotContains(t, name, files.StagePrefix, "%+v", tt)
		}
		left := w.tree()[tt.file]
		require.Equal(t, tt.left, left.data, "%+v", tt)
		require.True(t, tt.time.Equal(left.mtime), "%+v: %s", tt, left.mtime)
		if tt.kept {
			after, err := os.Stat(target)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after), "%+v", tt)
		}
	}
}
