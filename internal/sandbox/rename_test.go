//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// opsEnv holds the operations of a test binary as the program "do operations",
// one per line.
const opsEnv = "REMIT_TEST_OPS"

// doOperations performs each operation and prints its result.
func doOperations() int {
	for line := range strings.Lines(os.Getenv(opsEnv)) {
		words := strings.Fields(line)
		fmt.Printf("%s: %v\n", strings.TrimSpace(line), operate(words[0], words[1:]))
	}
	return 0
}

func operate(what string, args []string) error {
	two := func(flags uint) error { return unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], flags) }
	switch what {
	case "rename":
		return unix.Rename(args[0], args[1])
	case "noreplace":
		return two(unix.RENAME_NOREPLACE)
	case "exchange":
		return two(unix.RENAME_EXCHANGE)
	case "unknown":
		return two(1 << 20)
	case "link":
		return unix.Link(args[0], args[1])
	case "at":
		from, err := unix.Open(args[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(from) }()
		to, err := unix.Open(args[2], unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(to) }()
		return unix.Renameat(from, args[1], to, args[3])
	case "mkdir":
		return unix.Mkdir(args[0], 0o755)
	case "write":
		return os.WriteFile(args[0], []byte(args[1]), 0o644)
	case "rm":
		return unix.Unlink(args[0])
	case "chdir":
		return unix.Chdir(args[0])
	case "chmod":
		return unix.Chmod(args[0], 0o555)
	case "fault":
		_, _, errno := unix.Syscall(unix.SYS_RENAMEAT2, 1<<40, 8, 1<<40)
		return errno
	case "list":
		return list(args[0])
	}
	return fmt.Errorf("no such operation: %s", what)
}

// list prints everything in a tree.
func list(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Print(path, " ", info.Mode())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Printf(" %q", data)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Print(" -> ", to)
		default:
			value := make([]byte, 64)
			if n, err := unix.Lgetxattr(path, "user.note", value); err == nil {
				fmt.Printf(" note=%s", value[:n])
			}
		}
		if info.ModTime().Equal(old) {
			fmt.Print(" old")
		}
		fmt.Println()
		return nil
	})
}

// old is the time of every file in a tree.
var old = time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)

// makeTree creates the files for the operations.
func makeTree(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"d/e/deep", "d/shut", "empty", "full/x", "d/none"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, name := range []string{"a", "b", "d/x", "d/e/y", "d/e/deep/z", "full/x/f", "d/shut/in"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o644))
	}
	require.NoError(t, os.Symlink("x", filepath.Join(root, "d/link")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "d/e/gone")))
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "d/pipe"), 0o640))
	_ = unix.Setxattr(filepath.Join(root, "d"), "user.note", []byte("of-d"), 0) // if the file system supports attributes
	_ = unix.Setxattr(filepath.Join(root, "d/e"), "user.note", []byte("of-e"), 0)
	require.NoError(t, os.Chmod(filepath.Join(root, "d/e"), 0o750|fs.ModeSetgid))
	require.NoError(t, os.Chmod(filepath.Join(root, "d/shut"), 0o555))
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		ts := unix.NsecToTimespec(old.UnixNano())
		require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
		return nil
	}))
	t.Cleanup(func() {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, _ error) error {
			if d.IsDir() {
				_ = os.Chmod(path, 0o755)
			}
			return nil
		})
	})
}

// renames returns lists of operations, each for a separate tree.
func renames() map[string]string {
	return map[string]string{
		"a folder":                  "rename d z",
		"and back":                  "rename d z\nrename z d",
		"twice":                     "rename d y\nrename y z",
		"into another":              "rename d full/d",
		"out of another":            "rename d/e e",
		"onto an empty one":         "rename d empty",
		"onto a full one":           "rename d full",
		"onto a file":               "rename d a",
		"a file onto it":            "rename a d",
		"into itself":               "rename d d/e/d",
		"onto itself":               "rename d d",
		"onto its parent":           "rename d/e d",
		"no replace":                "noreplace d z",
		"no replace of a folder":    "noreplace d empty",
		"no replace of a file":      "noreplace d a",
		"exchange":                  "exchange d full",
		"exchange with a file":      "exchange a d",
		"exchange with a file 2":    "exchange d a",
		"exchange with nothing":     "exchange d z",
		"exchange with a child":     "exchange d d/e",
		"an unknown flag":           "unknown d z",
		"by descriptors":            "at d e full moved",
		"by dots":                   "chdir full\nrename ../d/../d ./../z",
		"slashes":                   "rename d/// z/",
		"a file with a slash":       "rename a/ z",
		"dot":                       "rename . z\nrename d/. z\nrename d/.. z",
		"nothing":                   "rename gone z\nrename d gone/z",
		"bad memory":                "fault",
		"changed before":            "write d/new 1\nrm d/x\nwrite d/e/y 2\nrename d z\nwrite z/after 3\nrm z/e/y",
		"a new one":                 "mkdir n\nwrite n/f 1\nrename n z\nrename z d/n",
		"a removed one made again":  "rename d z\nmkdir d\nwrite d/x new\nrename z d",
		"a read-only one":           "rename d/shut d/open",
		"a read-only one elsewhere": "rename d/shut shut",
		"in a read-only one":        "chmod d\nrename d/e d/f\nrename d/e f\nrename full d/full",
		"a child, then it":          "rename d/e d/f\nrename d z\nrename z/f/deep deep",
		"a parent, then a child":    "rename d z\nrename z/e e\nrename e/deep z/deep",
	}
}

// TestRename checks that a program that renames folders of a root gets the same
// results as outside of a sandbox, for each system call and each name of the
// tree. The root itself does not change.
func TestRename(t *testing.T) {
	needStrict(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, ops := range renames() {
		for _, without := range [][]string{nil, {"native"}} {
			t.Run(name+" "+strings.Join(without, " "), func(t *testing.T) {
				ops := ops + "\nlist ."
				plain, root := filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "root")
				makeTree(t, plain)
				makeTree(t, root)
				cmd := exec.Command(exe)
				cmd.Dir, cmd.Env = plain, []string{probeEnv + "=do operations", opsEnv + "=" + ops}
				if os.Getuid() == 0 { // no program in a sandbox has a capability
					cmd.Args = []string{"setpriv", "--bounding-set=-all", "--inh-caps=-all", exe}
					cmd.Path, err = exec.LookPath("setpriv")
					if err != nil {
						t.Skip("there is no setpriv, by which the root user runs a program without capabilities")
					}
				}
				want, err := cmd.CombinedOutput()
				require.NoError(t, err, string(want))
				before := listing(t, root)
				upper, err := os.MkdirTemp(filepath.Dir(root), "upper")
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, Discard(upper)) })
				got, exit, p := finish(t, Spec{
					Argv: []string{exe}, Env: []string{probeEnv + "=do operations", opsEnv + "=" + ops}, Dir: root, System: append(System(), exe),
					Roots: []Root{{Dir: root, View: Overlay, Upper: upper}}, Require: Strict, without: without,
				})
				require.Zero(t, exit.Code, got)
				require.Equal(t, string(want), got)
				require.Empty(t, exit.Met)
				_, err = p.Changes(root)
				require.NoError(t, err)
				require.NoError(t, p.Close())
				require.Equal(t, before, listing(t, root))
			})
		}
	}
}

// TestRenameMet checks that operations that fail only in a sandbox are reported
// with the exit.
func TestRenameMet(t *testing.T) {
	needStrict(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	native := []string{"native"}
	for _, tt := range []struct {
		ops, rule, text string
		without         []string
	}{
		{"rename d /tmp/d", "rename", "different file systems", nil},
		{"rename a /tmp/a\nrename b /tmp/b", "rename", "(2 times)", nil},
		{"link a /tmp/a", "link", "different file systems", nil},
		{"link a a2", "link", "an inode number of its own", native},
		{"write n 1\nlink n n2\nlink a a2", "link", `a2"`, native},
		{"chdir d\nrename ../d ../z\nwrite x 1", "rename", "is an empty folder from now on", native},
		{"rename d z", "rename", "no supervision of system calls to give: left out", []string{"native", "supervisor"}},
	} {
		root := filepath.Join(t.TempDir(), "root")
		makeTree(t, root)
		p, err := Start(context.Background(), "", Spec{
			Argv: []string{exe}, Env: []string{probeEnv + "=do operations", opsEnv + "=" + tt.ops}, Dir: root, System: append(System(), exe),
			Roots: []Root{{Dir: root, View: Overlay}}, Require: Strict, without: tt.without,
		}, Stdio{})
		require.NoError(t, err)
		exit, err := p.Wait()
		require.NoError(t, err)
		require.NoError(t, p.Close())
		require.Len(t, exit.Met, 1, tt.ops)
		require.Equal(t, tt.rule, exit.Met[0].Rule)
		require.Contains(t, exit.Met[0].Text, tt.text)
	}
}

// TestRenameMasked checks that masked names of a folder are also absent under
// the folder's new name. The program gets the same result for each kind of
// overlay.
func TestRenameMasked(t *testing.T) {
	needStrict(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, without := range [][]string{nil, {"native"}} {
		root := filepath.Join(t.TempDir(), "root")
		makeTree(t, root)
		upper, err := os.MkdirTemp(filepath.Dir(root), "upper")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, Discard(upper)) })
		said, exit, p := finish(t, Spec{
			Argv: []string{exe}, Env: []string{probeEnv + "=do operations", opsEnv + "=rename d/e f\nrename d z\nlist .\nrename z/x y\nrename f/deep/z y"}, Dir: root,
			System: append(System(), exe), Require: Strict, without: without,
			Roots: []Root{{Dir: root, View: Overlay, Upper: upper, Masked: []string{"d/x", "d/e/deep/z", "d/shut"}}},
		})
		require.Zero(t, exit.Code, said)
		require.Contains(t, said, "rename d z: <nil>\n")
		require.Contains(t, said, "f/deep drwx")
		for _, hidden := range []string{"z/x -", "z/shut", "f/deep/z -"} {
			require.NotContains(t, said, hidden)
		}
		require.Equal(t, 2, strings.Count(said, "no such file"), said)
		changes, err := p.Changes(root)
		require.NoError(t, err)
		for _, w := range changes {
			require.NotContains(t, []string{"z/x", "z/shut", "z/shut/in", "f/deep/z"}, w.Name)
		}
		require.NoError(t, p.Close())
	}
}
