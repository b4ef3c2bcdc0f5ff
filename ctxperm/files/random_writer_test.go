package files_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// randomWriter changes one file repeatedly while remit works on it. It remembers which
// of its texts must still exist: each one until the writer itself overwrites or
// removes it.
type randomWriter struct {
	w    *testEnv
	rng  *rand.Rand
	path string
	odds int // acts at one of so many points
	n    int
	owed map[string]bool
	log  []string
}

func (s *randomWriter) point(id string) {
	if s.rng.IntN(s.odds) != 0 {
		return
	}
	s.n++
	text := fmt.Sprintf("<%d>", s.n)
	before, _ := os.ReadFile(s.path)
	kind := []string{"replace", "append", "rewrite", "remove"}[s.rng.IntN(4)]
	s.log = append(s.log, kind+" "+text+" at "+id)
	switch kind {
	case "replace":
		other := filepath.Join(s.w.dir, "theirs.tmp")
		require.NoError(s.w.t, os.WriteFile(other, []byte(text), 0o644))
		require.NoError(s.w.t, os.Rename(other, s.path))
	case "append":
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		require.NoError(s.w.t, err)
		_, err = f.WriteString(text)
		require.NoError(s.w.t, err)
		require.NoError(s.w.t, f.Close())
		before = nil
	case "rewrite":
		require.NoError(s.w.t, os.WriteFile(s.path, []byte(text), 0o644))
	case "remove":
		_ = os.Remove(s.path)
		text = ""
	}
	maps.DeleteFunc(s.owed, func(owed string, _ bool) bool { return strings.Contains(string(before), owed) })
	if text != "" {
		s.owed[text] = true
	}
}

// settle requires that every remembered text is in the tree, or in a blob of
// the journal.
func (s *randomWriter) settle(about string) {
	var all strings.Builder
	for name, e := range s.w.tree() {
		all.WriteString(e.data)
		require.NotContains(s.w.t, name, "remit-stage", about)
	}
	for _, blob := range s.w.kept() {
		all.WriteString(blob)
	}
	for _, text := range slices.Sorted(maps.Keys(s.owed)) {
		require.Contains(s.w.t, all.String(), text, "%s: lost, after %q", about, s.log)
	}
}

// hostWithRandomWriter returns the host of a process beside the random writer, which may die.
func (w *testEnv) hostWithRandomWriter(s *randomWriter) *hosttest.Host {
	c := &crash{left: 1 << 30}
	if s.rng.IntN(2) == 0 {
		c.left = 1 + s.rng.IntN(60)
	}
	h := c.on(w.host())
	dying := h.OnPoint
	h.OnPoint = func(id string) error {
		s.point(id)
		return dying(id)
	}
	return h
}

// kept reads every blob that the journal's changes name.
func (w *testEnv) kept() []string {
	w.t.Helper()
	var out []string
	add := func(c effect.Change) {
		for _, ref := range c.Blobs {
			r, err := w.journal.OpenContent(w.t.Context(), ref)
			require.NoError(w.t, err)
			data, err := io.ReadAll(r)
			require.NoError(w.t, err)
			require.NoError(w.t, r.Close())
			out = append(out, string(data))
		}
	}
	for e, err := range w.journal.Entries(w.t.Context(), journal.Query{}) {
		require.NoError(w.t, err)
		r, err := record.Unseal(e)
		require.NoError(w.t, err)
		switch b := r.Body.(type) {
		case *record.Changed:
			add(b.Change)
		case *record.Reverting:
			for _, step := range b.Steps {
				add(step.Change)
			}
		}
	}
	return out
}

// TestRandomWriter runs a random writer during an action, its death, its revert and the death
// of that. A seed determines every run.
func TestRandomWriter(t *testing.T) {
	t.Parallel()
	if probe := newTestEnv(t).root.Features(); !probe.Exchange || !probe.Lease {
		t.Skip("others lose bytes here, as the package says")
	}
	stormy := slices.DeleteFunc(actions(), func(a action) bool { return a.file != "a.txt" && a.file != "new.txt" })
	runs := statcheck.Size(1_000, 30_000)
	conflicts, saved := 0, 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newTestEnv(t)
		w.createFiles()
		a := stormy[rng.IntN(len(stormy))]
		s := &randomWriter{w: w, rng: rng, path: filepath.Join(w.dir, a.file), odds: 1 + rng.IntN(20), owed: map[string]bool{}}
		h := w.hostWithRandomWriter(s)
		_ = w.do(h, a.do)
		for range 2 {
			_, _ = w.revertAs(t.Context(), w.hostWithRandomWriter(s))
		}
		if len(w.revert().NotReverted()) > 0 {
			conflicts++
		}
		for name := range w.tree() {
			if strings.Contains(name, "remit-saved") {
				saved++
			}
		}
		s.settle(fmt.Sprintf("seed %d, %s", seed, a.name))
		w.end()
	}
	t.Logf("%d conflicts, %d versions saved", conflicts, saved)
	require.NotZero(t, conflicts)
	require.NotZero(t, saved)
}

func TestSavedNamesFit(t *testing.T) {
	w := newTestEnv(t)
	name := strings.Repeat("é", 127)
	w.put(name, "before", 0o644)
	s := &randomWriter{w: w}
	s.path = filepath.Join(w.dir, name)
	n := 0
	h := w.host()
	h.OnPoint = func(id string) error {
		if id == "files.exchange" {
			n++
			other := filepath.Join(w.dir, "tmp")
			require.NoError(t, os.WriteFile(other, []byte(strings.Repeat("!", n)), 0o644))
			require.NoError(t, os.Rename(other, s.path))
		}
		return nil
	}
	if !w.root.Features().Exchange {
		t.Skip("nothing is exchanged here")
	}
	err := w.do(h, func(ctx context.Context, f *files.Files) error {
		return f.Write(ctx, name, []byte("x"), files.WriteOptions{})
	})
	require.ErrorIs(t, err, files.ErrConflict)
	require.ErrorContains(t, err, ".remit-saved-")
	require.Len(t, w.tree(), 2)
}
