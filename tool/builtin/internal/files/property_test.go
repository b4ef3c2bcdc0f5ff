package files_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
)

// seen is what an undo must bring back of one file.
type seen struct {
	mode   fs.FileMode
	data   string
	mtime  time.Time // of files
	xattrs map[string][]byte
}

func tree(t *testing.T, dir string) map[string]seen {
	t.Helper()
	root, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { _ = root.Close() }()
	out := map[string]seen{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		s := seen{mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			s.data, s.mtime = string(data), info.ModTime()
		case info.Mode()&fs.ModeSymlink != 0:
			s.data, err = os.Readlink(path)
			require.NoError(t, err)
		}
		s.xattrs, err = root.Xattrs(filepath.ToSlash(rel))
		require.NoError(t, err)
		out[filepath.ToSlash(rel)] = s
		return nil
	}))
	return out
}

// places are few, so that operations meet.
func places() []string {
	return []string{"a", "a/b", "a/b/c", "a/d", "e", "e/f", "g", "h"}
}

// grow makes a random small tree of files, directories and links.
func grow(t *testing.T, dir string, rng *rand.Rand) {
	t.Helper()
	root, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { _ = root.Close() }()
	for _, name := range places() {
		path := filepath.Join(dir, name)
		switch rng.IntN(5) {
		case 0:
			continue
		case 1, 2:
			if os.Mkdir(path, 0o755) == nil {
				require.NoError(t, os.Chmod(path, []fs.FileMode{0o755, 0o700, 0o775}[rng.IntN(3)]))
			}
		case 3:
			if os.WriteFile(path, fmt.Appendf(nil, "text %d\n", rng.IntN(3)), 0o600) == nil {
				require.NoError(t, os.Chmod(path, []fs.FileMode{0o644, 0o600, 0o755}[rng.IntN(3)]))
				require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1_500_000_000+rng.Int64N(1000), 789)))
			}
		case 4:
			_ = os.Symlink("a", path)
			continue
		}
		if rng.IntN(3) == 0 && root.Features().Xattrs {
			_ = root.SetXattr(name, "user.note", []byte{byte(rng.IntN(3))})
		}
	}
}

// anyCall is one call of one of the tools.
func anyCall(rng *rand.Rand) (name string, args tool.Args) {
	place := func() string { return places()[rng.IntN(len(places()))] }
	text := fmt.Sprint(rng.IntN(3))
	calls := []func() (string, tool.Args){
		func() (string, tool.Args) { return "file_read", tool.Args{"path": place()} },
		func() (string, tool.Args) { return "file_list", tool.Args{"recursive": true} },
		func() (string, tool.Args) { return "file_search", tool.Args{"pattern": text} },
		func() (string, tool.Args) { return "file_write", tool.Args{"path": place(), "content": text} },
		func() (string, tool.Args) {
			return "file_write", tool.Args{"path": place(), "content": text, "mode": "0640"}
		},
		func() (string, tool.Args) {
			return "file_edit", tool.Args{"path": place(), "old": "t", "new": text, "all": true}
		},
		func() (string, tool.Args) { return "file_delete", tool.Args{"path": place()} },
		func() (string, tool.Args) { return "file_delete", tool.Args{"path": place(), "recursive": true} },
		func() (string, tool.Args) { return "file_move", tool.Args{"from": place(), "to": place()} },
		func() (string, tool.Args) { return "file_move", tool.Args{"from": place(), "to": place()} },
		func() (string, tool.Args) { return "file_copy", tool.Args{"from": place(), "to": place()} },
		func() (string, tool.Args) { return "dir_create", tool.Args{"path": place()} },
	}
	return calls[rng.IntN(len(calls))]()
}

// TestAnyCallsAreTakenBack runs random calls in a transaction. A revert to a
// savepoint restores the tree as it was there. A revert of the transaction
// restores the tree as it was at the beginning.
func TestAnyCallsAreTakenBack(t *testing.T) {
	runs := statcheck.Size(60, 5_000)
	done := map[string]int{}
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dir := t.TempDir()
		grow(t, dir, rng)
		rt, err := agent.New(agent.Tools(files.Tools()...), agent.Root("workspace", dir), agent.Log(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
		require.NoError(t, err)
		tx, err := s.Begin(t.Context())
		require.NoError(t, err)
		var log []string
		calls := func() {
			for range 1 + rng.IntN(10) {
				name, args := anyCall(rng)
				before := tree(t, dir)
				out, _ := tx.Invoke(t.Context(), name, args)
				log = append(log, fmt.Sprint(name, args, out.Status))
				if out.Status == tool.StatusDone {
					done[name]++
				} else {
					require.Equal(t, before, tree(t, dir), "seed %d: a call that is not done has no effect: %q", seed, log)
				}
			}
		}
		first := tree(t, dir)
		calls()
		require.NoError(t, tx.Savepoint(t.Context(), "here"))
		middle := tree(t, dir)
		for range 2 {
			calls()
			rep, err := tx.RevertTo(t.Context(), "here")
			require.NoError(t, err, "seed %d: %q", seed, log)
			require.Empty(t, rep.NotReverted(), "seed %d: %q", seed, log)
			require.Equal(t, middle, tree(t, dir), "seed %d: %q", seed, log)
		}
		calls()
		rep, err := tx.Revert(t.Context(), revert.Options{})
		require.NoError(t, err, "seed %d: %q", seed, log)
		require.Empty(t, rep.NotReverted(), "seed %d: %q", seed, log)
		require.Equal(t, first, tree(t, dir), "seed %d: %q", seed, log)
		require.NoError(t, rt.Close())
	}
	for name := range byName() {
		require.NotZero(t, done[name], name)
	}
}
