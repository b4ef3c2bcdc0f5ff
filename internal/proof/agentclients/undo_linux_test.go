package agentclients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// worked is a session of real work, with the tree before each prompt.
type worked struct {
	*guarded
	pieces []piece
	trees  []treecheck.Tree // before each prompt, and at the end
	undone []string         // pieces whose work was not there after the prompt
	tr     agentclients.Transcript
}

// title is the text of a prompt. None is contained in another.
func title(i int, p piece) string { return fmt.Sprintf("work %02d: %s", i, p.name) }

// works lets the client work on pieces. The person writes a file of its own
// before each fifth prompt.
func (g *guarded) works(pieces []piece) *worked {
	g.t.Helper()
	w := &worked{guarded: g, pieces: pieces}
	var prompts []agentclients.Prompt
	for i, p := range pieces {
		prompt := agentclients.Prompt{Text: title(i, p)}
		for _, steps := range p.turns {
			var t turn
			for _, s := range steps {
				t.Calls = append(t.Calls, s.call(g.client.Name, g.dir))
			}
			prompt.Turns = append(prompt.Turns, t)
		}
		prompts = append(prompts, prompt)
	}
	require.NoError(g.t, os.Mkdir(filepath.Join(g.dir, "person"), 0o755))
	w.tr = g.client.Run(g.t, agentclients.Session{
		Dir: g.dir, Home: g.home, Prompts: prompts, Env: []string{"XDG_STATE_HOME=" + filepath.Join(g.base, "state")}, Limit: 20 * time.Minute,
		Before: w.before,
	})
	w.before(len(pieces))
	return w
}

// before looks at the work of the last prompt, writes as the person, and
// captures the tree.
func (w *worked) before(i int) {
	if i > 0 && w.pieces[i-1].done != "" {
		check := exec.Command("bash", "-c", w.pieces[i-1].done)
		check.Dir = w.dir
		if check.Run() != nil {
			w.undone = append(w.undone, title(i-1, w.pieces[i-1]))
		}
	}
	if i%5 == 2 {
		write(w.t, filepath.Join(w.dir, "person", fmt.Sprintf("%d.txt", i)), "the person\n")
	}
	w.trees = append(w.trees, w.tree())
}

// entry is one line of remit log --json.
type entry struct {
	Txn, State string
	Prompt     struct{ ID, Text string }
}

// entries returns the entries of a prompt's text, newest first.
func (g *guarded) entries(text string) (all []entry) {
	g.t.Helper()
	out, code := g.remit("log", "--json")
	require.Zero(g.t, code, out)
	for line := range bytes.Lines([]byte(out)) {
		var e entry
		require.NoError(g.t, json.Unmarshal(line, &e), string(line))
		if strings.Contains(e.Prompt.Text, text) {
			all = append(all, e)
		}
	}
	return all
}

// differences returns how the workspace differs from a tree, without the files
// of the person and the time of the folder itself.
func (g *guarded) differences(was treecheck.Tree) (all []treecheck.Difference) {
	g.t.Helper()
	for _, d := range treecheck.Compare(was, g.tree()) {
		own := strings.HasPrefix(d.Path, "person")
		if top := d.Path == "." && d.Field == treecheck.DirMtime; !own && !top {
			all = append(all, d)
		}
	}
	return all
}

// result is what a revert left, for each prompt.
// times are those where only the time of a folder differs.
type result struct{ exact, times, named, wrong, none int }

func (r result) String() string {
	return fmt.Sprintf("%d exact, %d but for times of folders, %d named, %d wrong (%d without a transaction)", r.exact, r.times, r.named, r.wrong, r.none)
}

// count judges the tree after a revert whose report is said.
func (w *worked) count(r *result, what, said string, tree int) {
	w.t.Helper()
	diffs := w.differences(w.trees[tree])
	unnamed, times, late := 0, 0, 0
	for _, d := range diffs {
		switch {
		case d.Field == treecheck.DirMtime:
			times++
		case w.late(d.Path, tree):
			late++
			continue
		case !strings.Contains(said, d.Path):
			unnamed++
		}
		w.t.Logf("%s: %s", what, d)
	}
	switch {
	case len(diffs) == late:
		r.exact++
	case len(diffs) == late+times:
		r.times++
	case unnamed == 0:
		r.named++
		w.t.Logf("%s: named:\n%s", what, said)
	default:
		r.wrong++
		w.t.Errorf("%s: %d differences that the report does not name:\n%s", what, unnamed, said)
	}
}

// late reports whether a command that ran on made a path after a tree was
// captured.
func (w *worked) late(path string, tree int) bool {
	for _, p := range w.pieces[:tree] {
		if slices.Contains(p.late, path) {
			return true
		}
	}
	return false
}

// undoes reverts each prompt, newest first.
func (w *worked) undoes() (r result) {
	w.t.Helper()
	for i := len(w.pieces) - 1; i >= 0; i-- {
		name := title(i, w.pieces[i])
		all := w.entries(name)
		said := ""
		if len(all) == 0 {
			r.none++
		} else {
			said, _ = w.remit("undo", all[0].Prompt.ID)
		}
		w.count(&r, "undo of "+name, said, i)
	}
	return r
}

// redoes reverts each revert, oldest prompt first.
func (w *worked) redoes() (r result) {
	w.t.Helper()
	for i, p := range w.pieces {
		all := w.entries(title(i, p))
		said := ""
		if len(all) == 0 {
			r.none++
		} else {
			said, _ = w.remit("redo", all[0].Prompt.ID)
		}
		w.count(&r, "redo of "+title(i, p), said, i+1)
	}
	return r
}

// TestWork lets real agents do real work with remit connected. Then it undoes
// prompt by prompt, redoes all of it, and undoes all at once.
func TestWork(t *testing.T) {
	prove(t)
	for _, c := range agentclients.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			g := newGuarded(t, c.Install(t))
			g.files()
			w := g.works(work())
			for i, o := range w.tr.Outcomes {
				for _, e := range o.Calls {
					t.Logf("%s: %s %.200s -> %.600s", title(i, w.pieces[i]), e.Tool, e.Args, strings.TrimSpace(e.Result))
				}
			}
			require.Len(t, w.trees, len(w.pieces)+1)
			for _, name := range w.undone {
				t.Logf("not done: %s", name)
			}
			undone := w.undoes()
			redone := w.redoes()
			var whole result
			said, _ := w.remit("undo", "-n", fmt.Sprint(len(w.pieces)))
			w.count(&whole, "undo of all", said, 0)
			for i := range w.pieces {
				if i%5 == 2 {
					require.FileExists(t, filepath.Join(g.dir, "person", fmt.Sprintf("%d.txt", i)))
				}
			}
			t.Logf("%s: %d prompts, %d not done; undo: %s; redo: %s; all at once: %s", c.Name, len(w.pieces), len(w.undone), undone, redone, whole)
		})
	}
}

// files are the workspace before the first prompt.
func (g *guarded) files() {
	g.t.Helper()
	write(g.t, filepath.Join(g.dir, "notes.txt"), "one\ntwo\nthree\n")
	for _, name := range []string{"sub", "keep"} {
		require.NoError(g.t, os.Mkdir(filepath.Join(g.dir, name), 0o755))
	}
	write(g.t, filepath.Join(g.dir, "sub", "b.txt"), "two\n")
}

func prove(t *testing.T) {
	t.Helper()
	if os.Getenv("REMIT_PROVE") == "" {
		t.Skip("starts programs from npm: make prove ARGS=clients, or REMIT_PROVE=1")
	}
}
