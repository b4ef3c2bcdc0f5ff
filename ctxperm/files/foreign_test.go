package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// theirs is the content of another process. It must never get lost.
const theirs = "written by somebody else"

// foreignAction is an action of another process on a file while remit works on it. Last
// is optional and runs at the end.
type foreignAction struct {
	name string
	do   func(w *testEnv, path string) (last func())
}

func foreignActions() []foreignAction {
	return []foreignAction{
		{"replace", func(w *testEnv, path string) func() {
			other := filepath.Join(w.dir, "theirs.tmp")
			require.NoError(w.t, os.WriteFile(other, []byte(theirs), 0o644))
			if os.Rename(other, path) != nil { // a directory is in the way
				_ = os.Remove(other)
				_ = os.WriteFile(filepath.Join(path, "inside"), []byte(theirs), 0o644)
			}
			return nil
		}},
		{"append", func(w *testEnv, path string) func() {
			if f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err == nil {
				_, err = f.WriteString(theirs)
				require.NoError(w.t, err)
				require.NoError(w.t, f.Close())
			}
			return nil
		}},
		{"hold open", func(w *testEnv, path string) func() {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o644)
			if err != nil {
				return nil
			}
			return func() {
				_, err := f.WriteString(theirs)
				require.NoError(w.t, err)
				require.NoError(w.t, f.Close())
			}
		}},
		{"fill", func(w *testEnv, path string) func() {
			_ = os.WriteFile(filepath.Join(path, "inside"), []byte(theirs), 0o644)
			return nil
		}},
		{"delete", func(w *testEnv, path string) func() {
			_ = os.Remove(path)
			return nil
		}},
	}
}

// interferer performs a foreign action at its n-th scheduling point.
type interferer struct {
	foreignAction
	w    *testEnv
	path string
	left int
	done bool
	at   string
	last func()
	kept func() bool // reports whether the content written then still exists
}

func (w *testEnv) interferer(d foreignAction, file string, n int) *interferer {
	return &interferer{foreignAction: d, w: w, path: filepath.Join(w.dir, file), left: n}
}

func (m *interferer) point(id string) {
	if m.left--; m.left == 0 {
		m.last = m.do(m.w, m.path)
		m.done, m.at = true, id
		m.kept = func() bool { return true }
		if m.w.wrote() || m.last != nil {
			m.kept = m.w.wrote
		}
	}
}

// end writes through the files that were opened and requires that nothing got
// lost.
func (m *interferer) end(about string) {
	if m.last != nil {
		m.last()
	}
	if m.done {
		require.True(m.w.t, m.kept(), "%s at %s, %s: lost; the tree holds %v", m.name, m.at, about, names(m.w.tree()))
	}
	for name := range m.w.tree() {
		require.NotContains(m.w.t, name, files.StagePrefix, "%s at %s, %s", m.name, m.at, about)
		// One change of the other process always keeps its own name.
		require.NotContains(m.w.t, name, "remit-saved", "%s at %s, %s", m.name, m.at, about)
	}
}

func (w *testEnv) wrote() bool {
	for _, e := range w.tree() {
		if strings.Contains(e.data, theirs) {
			return true
		}
	}
	return false
}

func names(tree map[string]entry) []string {
	var out []string
	for name := range tree {
		out = append(out, name)
	}
	return out
}

// withInterference runs a test for every action and foreign action, on a file system with
// exchange.
func withInterference(t *testing.T, run func(t *testing.T, a action, d foreignAction)) {
	t.Helper()
	if probe := newTestEnv(t).root.Features(); !probe.Exchange || !probe.Lease {
		t.Skip("others lose bytes here, as the package says")
	}
	for _, a := range actions() {
		for _, d := range foreignActions() {
			t.Run(a.name+"/"+d.name, func(t *testing.T) { run(t, a, d) })
		}
	}
}

// TestInterferenceInAction performs a foreign action at every point of an action, and then
// reverts the action.
func TestInterferenceInAction(t *testing.T) {
	t.Parallel()
	withInterference(t, func(t *testing.T, a action, d foreignAction) {
		step := statcheck.Stride(1)
		for n, more := 1+start(t)%step, true; more; n += step {
			w := newTestEnv(t)
			w.createFiles()
			m := w.interferer(d, a.file, n)
			h := w.host()
			h.OnPoint = func(id string) error { m.point(id); return nil }
			_ = w.do(h, a.do)
			w.revert()
			m.end("then undone")
			more = m.done
		}
	})
}

// TestInterferenceBeforeCrash performs a foreign action, and the process dies later.
func TestInterferenceBeforeCrash(t *testing.T) {
	t.Parallel()
	withInterference(t, func(t *testing.T, a action, d foreignAction) {
		for n, more := start(t), true; more; n += leap() {
			for k := n%planStep() + 1; ; k += planStep() {
				w := newTestEnv(t)
				w.createFiles()
				m, c := w.interferer(d, a.file, n), &crash{left: n + k}
				h := c.on(w.host())
				dying := h.OnPoint
				h.OnPoint = func(id string) error { m.point(id); return dying(id) }
				_ = w.do(h, a.do)
				w.revert()
				m.end("then died at " + strings.Join(c.trace, " "))
				if more = m.done; !c.ended {
					break
				}
			}
		}
	})
}

// TestInterferenceInRevert performs a foreign action at every point of the revert, which may die
// later.
func TestInterferenceInRevert(t *testing.T) {
	t.Parallel()
	withInterference(t, func(t *testing.T, a action, d foreignAction) {
		for n, more := start(t), true; more; n += leap() {
			for k := n%planStep() + 1; ; k += planStep() {
				w := newTestEnv(t)
				w.createFiles()
				require.NoError(t, w.do(w.host(), a.do))
				m, c := w.interferer(d, a.file, n), &crash{left: n + k}
				h := c.on(w.host())
				dying := h.OnPoint
				h.OnPoint = func(id string) error { m.point(id); return dying(id) }
				_, _ = w.revertAs(t.Context(), h)
				w.revert()
				m.end("then died at " + strings.Join(c.trace, " "))
				if more = m.done; !c.ended {
					break
				}
			}
		}
	})
}

// TestInterferenceInRecovery kills the process at every point of an action, and
// performs a foreign action at every point of the settling.
func TestInterferenceInRecovery(t *testing.T) {
	t.Parallel()
	withInterference(t, func(t *testing.T, a action, d foreignAction) {
		for n, first := start(t), true; first; n += leap() {
			for k, more := n%planStep()+1, true; more; k += planStep() {
				w := newTestEnv(t)
				w.createFiles()
				c := &crash{left: n}
				_ = w.do(c.on(w.host()), a.do)
				m, h := w.interferer(d, a.file, k), w.host()
				h.OnPoint = func(id string) error { m.point(id); return nil }
				_, err := w.revertAs(t.Context(), h)
				require.NoError(t, err)
				w.revert()
				m.end("after a death at " + strings.Join(c.trace, " "))
				first, more = c.ended, m.done
			}
		}
	})
}
