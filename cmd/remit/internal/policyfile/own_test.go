package policyfile

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

// TestOwnFiles: with a policy that allows everything, the engine asks before a
// call changes a file that the next start reads, under any name of the file.
func TestOwnFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"ws/conf/gateway.json": "{}", "ws/p.rego": "package remit", "ws/rules/a.rego": "package remit", "ws/deep/q.rego": "package remit", "elsewhere/r.rego": "package remit", "two/p.rego": "package remit"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "ws"), filepath.Join(dir, "alias")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "ws/deep/q.rego"), filepath.Join(dir, "elsewhere/q.rego")))
	require.NoError(t, os.Symlink("deep", filepath.Join(dir, "ws/way")))
	require.NoError(t, os.Symlink("way", filepath.Join(dir, "ws/first")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ws/other"), 0o755))
	require.NoError(t, os.Symlink("../other/f.txt", filepath.Join(dir, "ws/rules/linked.rego")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "apart"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(dir, "ws/other/d.json"), filepath.Join(dir, "apart/data.json")))
	require.NoError(t, os.Symlink("round", filepath.Join(dir, "ws/round")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ws/deep/s.rego"), []byte("package remit"), 0o644))
	all, err := rego.New(rego.Options{Sources: []rego.Source{{FS: fstest.MapFS{"all.rego": {Data: []byte("package remit\n\nallow contains \"all\"\n")}}}}})
	require.NoError(t, err)
	t.Chdir(dir)
	e := AskBeforeChange(all, []string{"alias/p.rego", "ws/rules", "elsewhere/q.rego", "elsewhere/r.rego", "ws/first/s.rego", "ws/round", "apart", "builtin:flow"}, "ws/conf/gateway.json", []string{"workspace=" + dir + "/ws", "two=two"})
	for _, tt := range []struct{ action, file, effect string }{
		{"write", "workspace/p.rego", "ask"},
		{"delete", "workspace/p.rego", "ask"},
		{"write", "workspace/P.REGO. ", "ask"},
		{"read", "workspace/p.rego", "allow"},
		{"write", "workspace/p_test.rego", "allow"},
		{"write", "workspace/r.rego", "allow"},
		{"write", "two/p.rego", "allow"},
		{"write", "workspace/conf/gateway.json", "ask"},
		{"delete", "workspace/conf", "ask"},
		{"write", "workspace/conf", "allow"},
		{"write", "workspace/conf/other.json", "allow"},
		{"write", "workspace/rules/a.rego", "ask"},
		{"write", "workspace/rules/new/b.rego", "ask"},
		{"write", "workspace/rules/data.json", "ask"},
		{"write", "workspace/rules/notes.md", "allow"},
		{"write", "workspace/rules", "allow"},
		{"delete", "workspace/rules", "ask"},
		{"write", "workspace/deep/q.rego", "ask"},
		{"delete", "workspace", "ask"},
		{"write", "workspace/other/f.txt", "ask"},
		{"write", "workspace/other/d.json", "ask"},
		{"delete", "workspace/other", "ask"},
		{"write", "workspace/other/e.rego", "allow"},
		{"write", "workspace/first", "ask"},
		{"write", "workspace/way", "ask"},
		{"delete", "workspace/way", "ask"},
		{"write", "workspace/deep", "allow"},
		{"write", "workspace/deep/s.rego", "ask"},
		{"write", "workspace/deep/t.rego", "allow"},
	} {
		root, below, _ := strings.Cut(tt.file, "/")
		of := perm.ResourceFacts{Kind: "file", Text: "file://" + tt.file, Root: root, Path: below, Name: path.Base(tt.file)}
		if below != "" {
			of.Segments = strings.Split(below, "/")
		}
		r := perm.Request{Purpose: perm.PurposeRun, Access: perm.AccessFacts{Action: perm.Action(tt.action), Resource: of}}
		d, err := e.Decide(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, tt.effect, d.Effect().String(), "%s %s", tt.action, tt.file)
		if tt.effect == "ask" {
			require.Len(t, d.Reasons(), 1, "what the policy allows is no reason to ask")
			require.Equal(t, all.Revision(), d.Revision())
		}
		r.Purpose, r.Tool.Coverage = perm.PurposeApply, "observed"
		d, err = e.Decide(t.Context(), r)
		require.NoError(t, err)
		require.NotEqual(t, perm.Ask, d.Effect(), "%s has happened", tt.file)
	}
	require.Same(t, all, AskBeforeChange(all, []string{"builtin:flow"}, "", []string{"workspace=ws"}), "there is no such file")
}

// TestOwnFilesThatMove: the next start reads the current target of a link.
func TestOwnFilesThatMove(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ws/one.rego", "ws/two.rego", "ws/v1/p.rego", "ws/v2/p.rego", "ws/pol/a.rego", "ws/x.rego", "ws/pol.rego"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("package remit"), 0o644))
	}
	link := func(to, name string) {
		name = filepath.Join(dir, "ws", name)
		_ = os.Remove(name)
		require.NoError(t, os.Symlink(to, name))
	}
	link("one.rego", "p.rego")
	link("v1", "cur")
	all, err := rego.New(rego.Options{Sources: []rego.Source{{FS: fstest.MapFS{"all.rego": {Data: []byte("package remit\n\nallow contains \"all\"\n")}}}}})
	require.NoError(t, err)
	e := AskBeforeChange(all, []string{dir + "/ws/p.rego", dir + "/ws/cur", dir + "/ws/pol"}, "", []string{"workspace=" + dir + "/ws"})
	asks := func(file string) bool {
		of := perm.ResourceFacts{Kind: "file", Text: "file://workspace/" + file, Root: "workspace", Path: file, Segments: strings.Split(file, "/")}
		d, err := e.Decide(t.Context(), perm.Request{Purpose: perm.PurposeRevert, Access: perm.AccessFacts{Action: perm.Write, Resource: of}})
		require.NoError(t, err)
		return d.Effect() == perm.Ask
	}
	require.True(t, asks("one.rego"))
	require.False(t, asks("two.rego"))
	require.True(t, asks("v1/p.rego"))
	require.False(t, asks("x.rego"))

	link("two.rego", "p.rego")
	link("v2", "cur")
	require.True(t, asks("two.rego"))
	require.False(t, asks("one.rego"))
	require.True(t, asks("v2/p.rego"))
	require.False(t, asks("v1/p.rego"))

	require.True(t, asks("pol/x.rego"))
	link("../x.rego", "pol/x.rego") // a person approved this change
	require.True(t, asks("x.rego"))
}
