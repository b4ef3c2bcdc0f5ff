package connect_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/connect"
)

var update = flag.Bool("update", false, "rewrite what the golden files expect")

// testHome is a home and a project of a test's own.
type testHome struct {
	t    *testing.T
	root string
	connect.Environment
}

func newTestHome(t *testing.T) *testHome {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &testHome{t: t, root: root}
	w.Environment = connect.Environment{
		OS: "linux", Home: w.at("home"), Project: w.at("project"), Command: "/opt/remit/bin/remit", State: w.at("state"),
	}
	for _, dir := range []string{w.Home, w.Project} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	return w
}

func (w *testHome) at(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *testHome) write(name, text string) {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(filepath.Dir(w.at(name)), 0o755))
	require.NoError(w.t, os.WriteFile(w.at(name), []byte(text), 0o644))
}

func (w *testHome) read(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(w.at(name))
	require.NoError(w.t, err)
	return string(text)
}

// tree is every file below a folder.
func (w *testHome) tree(names ...string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, name := range names {
		require.NoError(w.t, filepath.WalkDir(w.at(name), func(path string, d os.DirEntry, err error) error {
			if err != nil && os.IsNotExist(err) {
				return nil
			}
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(w.root, path)
				all[filepath.ToSlash(rel)] = w.read(filepath.ToSlash(rel))
			}
			return err
		}))
	}
	return all
}

func (w *testHome) client(name string) connect.Client {
	w.t.Helper()
	c, err := connect.ClientByName(name)
	require.NoError(w.t, err)
	return c
}

func (w *testHome) connect(name string) connect.Report {
	w.t.Helper()
	r, err := w.client(name).Connect(w.Environment, connect.Write)
	require.NoError(w.t, err)
	return r
}

func (w *testHome) disconnect(name string) connect.Report {
	w.t.Helper()
	r, err := w.client(name).Disconnect(w.Environment, connect.Write)
	require.NoError(w.t, err)
	return r
}

// plain is a text with the paths of this run taken out.
func (w *testHome) plain(text string) string {
	text = strings.ReplaceAll(text, w.root, "")
	for _, project := range []string{w.Project, "/src/shop"} {
		for name := range w.tree("home/.config/remit/projects") {
			base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".json"), "-local")
			if strings.HasPrefix(base, filepath.Base(project)+"-") {
				text = strings.ReplaceAll(text, base, filepath.Base(project)+"-DIGEST")
			}
		}
	}
	for name := range w.tree("state") {
		base := filepath.Base(name)
		text = strings.ReplaceAll(text, strings.TrimSuffix(strings.TrimSuffix(base, ".json"), ".backup"), "RECORD")
	}
	return text
}

// TestGolden connects each client from files as people have them, and compares all that
// it writes; then disconnects, and wants every file back byte for byte.
func TestGolden(t *testing.T) {
	for _, c := range connect.Clients() {
		t.Run(c.Name(), func(t *testing.T) {
			w := newTestHome(t)
			w.Hooks = []connect.Scope{connect.User}
			golden := filepath.Join("testdata", c.Name()+".txtar")
			archive, err := txtar.ParseFile(golden)
			require.NoError(t, err)
			for _, f := range archive.Files {
				if strings.HasPrefix(f.Name, "home/") || strings.HasPrefix(f.Name, "project/") {
					w.write(f.Name, string(f.Data))
				}
			}
			before := w.tree("home", "project")

			shown, err := c.Connect(w.Environment, connect.Preview)
			require.NoError(t, err)
			require.Equal(t, before, w.tree("home", "project", "state"), "a preview writes nothing")
			done := w.connect(c.Name())
			for i := range shown.Files {
				require.Equal(t, shown.Files[i].Changed, done.Files[i].Changed)
			}
			again := w.connect(c.Name())
			require.False(t, again.Changed(), "connecting twice")
			require.Empty(t, again.Gateways)
			status, err := c.Status(w.Environment)
			require.NoError(t, err)

			var parts []txtar.File
			for _, f := range archive.Files {
				if _, input := before[f.Name]; input {
					parts = append(parts, f)
				}
			}
			add := func(name, text string) {
				parts = append(parts, txtar.File{Name: w.plain(name), Data: []byte(w.plain(text))})
			}
			after := w.tree("home", "project")
			for _, name := range sorted(after) {
				if after[name] != before[name] && !strings.HasSuffix(name, "/remit.js") {
					add("connected/"+name, after[name])
				}
			}
			for _, f := range status.Files {
				if f.State == connect.StateAbsent {
					continue
				}
				text, err := json.MarshalIndent(f, "", "  ")
				require.NoError(t, err)
				add("status"+f.Path, string(text)+"\n")
			}
			text, err := json.MarshalIndent(status.Coverage, "", "  ")
			require.NoError(t, err)
			add("coverage", string(text)+"\n")
			for _, f := range shown.Files {
				if _, there := before[strings.TrimPrefix(f.Path, w.root+"/")]; there {
					add("preview"+f.Path, f.Diff)
				}
			}
			got := txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: parts})
			if *update {
				require.NoError(t, os.WriteFile(golden, got, 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))

			for _, f := range w.disconnect(c.Name()).Files {
				require.True(t, f.Identical, f.Path)
			}
			require.Equal(t, before, w.tree("home", "project", "state"), "all is as it was, and nothing is left")
		})
	}
}

func sorted(all map[string]string) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
