package process_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// allowAll lets everything through: what is tried here is undo.
func allowAll() agent.Option {
	return agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	}))
}

// listing is all that an undo promises of a tree: names, types, bits, owners, bytes, targets,
// attributes, which names are one file, and with times those of files.
func listing(t *testing.T, dir string, times bool) []string {
	t.Helper()
	var out []string
	first := map[uint64]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		var is unix.Stat_t
		require.NoError(t, unix.Lstat(path, &is))
		line := fmt.Sprintf("%q %o %d:%d", name, is.Mode, is.Uid, is.Gid)
		switch is.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			if times || filepath.Base(name) != "index" { // git's index holds times and numbers of files
				line += fmt.Sprintf(" %d %x", len(data), sum(data))
			}
			if is.Nlink > 1 {
				if first[is.Ino] == "" {
					first[is.Ino] = name
				}
				line += " = " + first[is.Ino]
			}
			if times {
				line += fmt.Sprint(" ", is.Mtim.Sec, ".", is.Mtim.Nsec)
			}
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			line += fmt.Sprintf(" -> %q", target)
		}
		return appendAttributes(&out, path, line, is)
	}))
	return out
}

func appendAttributes(out *[]string, path, line string, is unix.Stat_t) error {
	if is.Mode&unix.S_IFMT != unix.S_IFLNK {
		names := make([]byte, 4096)
		n, err := unix.Listxattr(path, names)
		if err != nil {
			return err
		}
		all := strings.Split(strings.TrimRight(string(names[:n]), "\x00"), "\x00")
		slices.Sort(all)
		for _, name := range all {
			if name != "" && name != "security.selinux" {
				value := make([]byte, 4096)
				n, err := unix.Getxattr(path, name, value)
				if err != nil {
					return err
				}
				line += fmt.Sprintf(" %s=%q", name, value[:n])
			}
		}
	}
	*out = append(*out, line)
	return nil
}

func sum(data []byte) uint64 { // FNV-1a
	h := uint64(14695981039346656037)
	for _, b := range data {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// foreignEnv names a workspace with a file of another user. Only root can
// create such a file.
const foreignEnv = "REMIT_TEST_FOREIGN"

// ofTheOther reports whether a subtest is left to the run of the other user, where the tests run as root and as an ordinary user: each takes
// half of what is the same for both, and an ordinary user alone everything.
func ofTheOther(name string) bool {
	root, ordinary := os.Getuid() == 0, os.Getenv(foreignEnv) != ""
	if statcheck.Whole() || root == ordinary {
		return false
	}
	return (sum([]byte(name))%2 == 0) == root
}

// TestUndoOfPrograms checks that a program in the sandbox changes the workspace
// exactly as outside. Undo restores the workspace as if the program had never
// run.
func TestUndoOfPrograms(t *testing.T) {
	git := "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' HOME=/nonexistent; "
	repo := git + "git init -q -b main . && git add . && git commit -qm one && echo 2 > src/new && git add . && git commit -qm two && git checkout -q -b side HEAD~1 && echo 3 > src/side && git add . && git commit -qm three; "
	for _, tt := range []struct{ name, setup, script string }{
		{"nothing", "", "ls -R > /dev/null"},
		{"git init and commit", "", git + "git init -q -b main . && git add . && git commit -qm one && git log --oneline"},
		{"git rebase", repo, git + "git rebase -q main && git log --oneline"},
		{"git reset", repo, git + "git checkout -q main && git reset -q --hard HEAD~1"},
		{"git gc", repo, git + "git gc -q --aggressive --prune=now"},
		{"sed in place", "", "sed -i s/a/b/ a src/main.go"},
		{"remove a tree", "", "rm -rf src"},
		{"remove everything", "", "rm -rf ./* .hidden"},
		{"move across folders", "", "mv src/deep docs/; mv a src/a; mv src/main.go ."},
		{"swap two names", "", "mv a t; mv b a; mv t b"},
		{"tar", "tar cf x.tar src docs", "mkdir out && tar xf x.tar -C out"},
		{"chmod", "", "chmod -R go-rwx ./*; chmod 700 src; chmod +x a"},
		{"symbolic links", "", "ln -sfn docs link; ln -s nowhere dangling; rm -rf docs; ln -s src docs"},
		{"hard links", "", "ln a a2; ln src/main.go src/deep/again; ln a2 docs/a3"},
		{"existing hard links", "ln a twin; ln src/deep/x src/deep/y; ln b b2", "rm a; rm -r src/deep; rm b b2"},
		{"replace a file by a folder", "", "rm a; mkdir a; echo x > a/a; rm -r src; echo file > src"},
		{"replace a folder by one with the same folders", "", "rm -r src; mkdir -p src/deep/er; echo new > src/deep/er/n; echo x > src/deep/q"},
		{"folder in place of a link", "ln -s src s", "rm s; mkdir s; echo y > s/f"},
		{"deep folder in place of a link", "ln -s src s", "rm s; mkdir -p s/deep; echo y > s/deep/f; ln s/deep/f s/g"},
		{"second name of a changed file", "", "chmod 600 b; ln b b2"},
		{"attributes", "", "python3 -c 'import os; os.setxattr(\"a\", \"user.k\", b\"v\"); os.setxattr(\"src\", \"user.d\", b\"w\")'"},
		{"odd names", "", "printf x > \"$(printf 'new\\nline')\"; printf y > \"$(printf 'in\\377valid')\"; mkdir ' '; printf z > ' / '; printf 1 > 'a*b?[c]'"},
		{"odd names removed", "printf x > \"$(printf 'new\\nline')\"; printf y > \"$(printf 'in\\377valid')\"", "rm -f n* i*"},
		{"sparse", "", "truncate -s 8M sparse; printf end >> sparse; truncate -s 3 a"},
		{"touch", "", "touch -d 2001-01-01 a src/main.go"},
		{"dies half-way", "", "echo half > a; rm b; kill -9 $$; echo never > c"},
		{"leaves daemons", "", "i=0; while [ $i -lt 20 ]; do setsid sh -c 'trap \"\" TERM; while :; do echo x >> a; done' > /dev/null 2>&1 & i=$((i+1)); done; sleep 0.1"},
		{"sqlite", "", "python3 -c 'import sqlite3; d=sqlite3.connect(\"db\"); d.execute(\"create table t(a)\"); d.execute(\"insert into t values(1)\"); d.commit()'"},
		{"group of a folder", "chmod g+s src", "echo x > src/new; mkdir src/more; touch src/main.go"},
		{"read-only folders", "chmod 555 docs; chmod 500 src/deep; chmod 400 b", "chmod 755 docs; echo x > docs/new; chmod 555 src; chmod 700 src/deep/er; mkdir n; chmod 500 n; chmod 400 a; rm b"},
		{"git mv of a folder", repo, git + "git mv src lib && git commit -qm moved && git mv lib/deep docs/deeper && git stash -q && git stash pop -q"},
		{"rename of a folder", "", `python3 -c 'import os; os.rename("src", "lib"); os.rename("lib/deep", "docs/deep"); os.mkdir("e"); os.rename("docs", "e"); open("lib/new", "w").write("n"); os.remove("e/deep/x")'`},
		{"rename of a folder and back", "", `python3 -c 'import os; os.rename("src", "lib"); os.rename("lib", "src"); os.rename("src/deep", "t"); os.rename("t", "src/deep")'`},
		{"rename onto a folder", "mkdir -p lib docs/empty; chmod 700 docs/empty", `python3 -c 'import os; os.rename("src", "lib"); os.rename("lib/deep", "docs/empty")'`},
		{"rename in the place of another", "", `python3 -c 'import os; os.rename("src", "t"); os.rename("docs", "src"); os.rename("t", "docs")'`},
		{"many files", "", "i=0; while [ $i -lt 300 ]; do echo $i > src/n$i; i=$((i+1)); done"},
	} {
		for _, way := range writeModeCases(t) {
			if ofTheOther(tt.name + way.name) {
				continue
			}
			t.Run(tt.name+way.name, func(t *testing.T) {
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
				fill(t, w.dir)
				plainly(t, w.dir, tt.setup)
				other := w.dir + "-plain"
				removable(t, w.dir, other)
				require.NoError(t, exec.Command("cp", "-a", w.dir, other).Run())
				before := listing(t, w.dir, true)
				txn, o := w.shell(t, tt.script)
				if tt.name != "leaves daemons" { // which never write the same twice
					plainly(t, other, tt.script)
					equal(t, listing(t, other, false), listing(t, w.dir, false), o.Text)
				}
				after := listing(t, w.dir, true)
				rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err, "%+v", rep)
				equal(t, before, listing(t, w.dir, true), "undo")
				rt := w.rt
				_, err = rt.Redo(t.Context(), txn, "tester")
				require.NoError(t, err)
				equal(t, after, listing(t, w.dir, true), "redo")
				_, err = w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				equal(t, before, listing(t, w.dir, true), "undo of the redo")
			})
		}
	}
}

// TestCloneOfTheWorkspace: git clones a folder of the workspace by hard links where the
// kernel keeps these whole. Where it does not, the answer says so, and how to do it.
func TestCloneOfTheWorkspace(t *testing.T) {
	w := newProgramSetup(t, allowAll())
	fill(t, w.dir)
	git := "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/nonexistent; "
	plainly(t, w.dir, git+"git init -q -b main . && git add . && git commit -qm one")
	before := listing(t, w.dir, true)
	txn, o := w.shell(t, git+"git clone -q . inner && git -C inner fsck --strict && test \"$(cat inner/src/main.go)\" = \"$(cat src/main.go)\"")
	if strings.Contains(o.Text, "hardlink different from source") {
		require.Contains(t, o.Text, "[sandbox: link of ")
		require.Contains(t, o.Text, "--no-hardlinks")
		_, err := w.s.Revert(t.Context(), txn, revert.Options{})
		require.NoError(t, err)
		txn, o = w.shell(t, git+"git clone -q --no-hardlinks . inner && git -C inner fsck --strict")
	}
	require.NotContains(t, o.Text, "exit code")
	require.FileExists(t, filepath.Join(w.dir, "inner", "src", "main.go"))
	rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
	require.NoError(t, err, "%+v", rep)
	equal(t, before, listing(t, w.dir, true), "undo")
}

// TestLinksStayWhole: where the kernel keeps the names of a file together, what a
// program does to one of them, or to a folder with some of them, comes to the root as
// anywhere else.
func TestLinksStayWhole(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only the root user's overlays keep the names of a file together")
	}
	for name, script := range map[string]string{
		"write":              "echo more >> a",
		"write deep":         "echo more >> src/twin",
		"bits":               "chmod 600 src/deep/y",
		"attribute":          `rm src/twin; python3 -c 'import os; os.setxattr("a", "user.k", b"v"); os.setxattr("b3", "user.k", b"v")'`,
		"another name":       "ln a a3; ln src/deep/x docs/x3",
		"rename":             "mv a a9; mv src/deep/x docs/",
		"rename of a folder": `python3 -c 'import os; os.rename("src", "lib")'`,
		"rename, then write": `python3 -c 'import os; os.rename("src", "lib")'; echo more >> lib/twin; echo y > lib/deep/y`,
		"replace one":        "cp a t; rm a; mv t a",
		"remove one":         "rm src/twin src/deep/x",
		"remove the folder":  "rm -r src",
		"clone of a folder":  "cp -al src copy; echo more >> copy/twin",
	} {
		t.Run(name, func(t *testing.T) {
			w := newProgramSetup(t, allowAll())
			fill(t, w.dir)
			plainly(t, w.dir, "ln a src/twin; ln src/deep/x src/deep/y; ln b docs/b2; ln b b3")
			other := w.dir + "-plain"
			require.NoError(t, exec.Command("cp", "-a", w.dir, other).Run())
			before := listing(t, w.dir, true)
			txn, o := w.shell(t, script)
			plainly(t, other, script)
			equal(t, listing(t, other, false), listing(t, w.dir, false), o.Text)
			after := listing(t, w.dir, true)
			rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
			require.NoError(t, err, "%+v", rep)
			equal(t, before, listing(t, w.dir, true), "undo")
			_, err = w.rt.Redo(t.Context(), txn, "tester")
			require.NoError(t, err)
			equal(t, after, listing(t, w.dir, true), "redo")
		})
	}
}

// TestTakesRightsAway: what a program leaves that its owner may not read is reverted all
// the same where remit may read everything, and with what it holds. Where it may not, all
// of it is refused, and nothing happened.
func TestTakesRightsAway(t *testing.T) {
	for _, tt := range []struct{ setup, script, left string }{
		{"", "echo new > a; chmod 000 a", `left "a" with the bits 0000`},
		{"", "echo new > n; ln n n2; chmod 000 n", `left "n" with the bits 0000`},
		{attributed, "chmod 000 a src", `left "a" with the bits 0000`},
		{"", "echo y > src/deep/x; rm src/deep/er/z; chmod 000 src/deep/er src/deep src", `left "src" with the bits 0000`},
		{"", "chmod 600 src/deep", `left "src/deep" with the bits 0600`},
		{"", "mkdir n; echo f > n/f; chmod 500 n", `"n/f" was written, but its owner may not write in its folder`},
		{"chmod 500 src/deep", "chmod 700 src/deep; rm src/deep/x", `"src/deep/x" was written, but`},
		{"chmod 500 docs", "echo more >> docs/readme", `"docs/readme" was written, but`},
	} {
		for _, way := range writeModeCases(t) {
			t.Run(tt.script+way.name, func(t *testing.T) {
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
				removable(t, w.dir)
				fill(t, w.dir)
				plainly(t, w.dir, tt.setup)
				before := listing(t, w.dir, true)
				if os.Getuid() != 0 {
					_, o, err := w.invoke(t, tt.script)
					require.ErrorIs(t, err, tool.ErrFailed)
					require.Contains(t, o.Error.Why, tt.left)
					equal(t, before, listing(t, w.dir, true), "nothing happened")
					_, o = w.shell(t, "cat a src/main.go src/deep/x src/deep/er/z docs/readme")
					require.Equal(t, "aaa\npackage main // a\nxzr\n", o.Text, "the copy is as the root is again")
					return
				}
				other := w.dir + "-plain"
				require.NoError(t, exec.Command("cp", "-a", w.dir, other).Run())
				txn, o := w.shell(t, tt.script)
				plainly(t, other, tt.script)
				equal(t, listing(t, other, false), listing(t, w.dir, false), o.Text)
				after := listing(t, w.dir, true)
				rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err, "%+v", rep)
				equal(t, before, listing(t, w.dir, true), "undo")
				_, err = w.rt.Redo(t.Context(), txn, "tester")
				require.NoError(t, err)
				equal(t, after, listing(t, w.dir, true), "redo")
			})
		}
	}
}

// removable lets an ordinary user remove folders after a test, regardless of
// their permission bits.
func removable(t *testing.T, dirs ...string) {
	t.Cleanup(func() { _ = exec.Command("chmod", append([]string{"-R", "u+rwx"}, dirs...)...).Run() })
}

// attributed gives a file and a folder attributes, which are content like any other.
const attributed = `python3 -c 'import os; os.setxattr("a", "user.k", b"v"); os.setxattr("src", "user.d", b"w")'`

type writeModeCase struct {
	name   string
	driver *handle.Driver
}

// writeModeCases are how a program's changes can be had: by an overlay, and by a copy.
func writeModeCases(t *testing.T) (all []writeModeCase) {
	t.Helper()
	for _, copies := range []bool{false, true} {
		d, err := handle.New(handle.Config{UseCopies: copies, Shim: shim(t)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		all = append(all, writeModeCase{map[bool]string{true: ", by a copy"}[copies], d})
	}
	return all
}

// equal says only what differs.
func equal(t *testing.T, want, got []string, why string) {
	t.Helper()
	var differ []string
	for _, l := range want {
		if !slices.Contains(got, l) {
			differ = append(differ, "- "+l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			differ = append(differ, "+ "+l)
		}
	}
	require.Empty(t, differ, why)
}

// fill makes a small tree with times that nothing would give by chance.
func fill(t *testing.T, dir string) {
	t.Helper()
	for name, content := range map[string]string{
		"a": "aaa\n", "b": "b\n", ".hidden": "h", "src/main.go": "package main // a\n", "src/deep/x": "x", "src/deep/er/z": "z", "docs/readme": "r\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	require.NoError(t, exec.Command("sh", "-c", "find "+dir+" -type f -exec touch -d '2020-02-02 02:02:02.123456789' {} +").Run())
}

// plainly runs a script in a folder, without remit.
func plainly(t *testing.T, dir, script string) {
	t.Helper()
	if script == "" {
		return
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		require.NoError(t, err, string(out))
	}
}

// TestKilledByTime: what a program wrote that ran out of time is nowhere.
func TestKilledByTime(t *testing.T) {
	w := newProgramSetup(t, allowAll())
	fill(t, w.dir)
	before := listing(t, w.dir, true)
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": "while :; do echo x >> a; date > b; done", "timeout_s": 1})
	require.ErrorIs(t, err, tool.ErrTimeout)
	require.Equal(t, tool.StatusTimeout, o.Status)
	equal(t, before, listing(t, w.dir, true), "undo")
}
