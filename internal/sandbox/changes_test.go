//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// runIn runs a shell script with one root with an overlay.
func runIn(t *testing.T, root, script string) (*Process, string) {
	t.Helper()
	upper, err := os.MkdirTemp(filepath.Dir(root), "upper")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, Discard(upper)) })
	out, _, p := finish(t, Spec{
		Argv: []string{"sh", "-c", script}, Dir: root, Env: []string{"PATH=/usr/bin:/bin"}, Require: Strict,
		Roots: []Root{{Dir: root, View: Overlay, Upper: upper}},
	})
	return p, out
}

func newRoot(t *testing.T) string {
	root := filepath.Join(t.TempDir(), "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "d", "e"), 0o755))
	for _, name := range []string{"a", "b", "d/x", "d/e/y"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o644))
	}
	require.NoError(t, os.Symlink("a", filepath.Join(root, "link")))
	return root
}

func words(w OverlayEntry) string {
	text := fmt.Sprintf("%s %s", w.Name, w.Kind)
	switch {
	case w.Kind == Link:
		text += " -> " + w.Target
	case w.Kind == File:
		text += fmt.Sprintf(" %o %d", w.Mode.Perm(), w.Size)
	case w.Replaced:
		text += " replaced"
	}
	if w.Copied && w.Kind == File {
		text += " copied"
	}
	for k, v := range w.Xattrs {
		text += fmt.Sprintf(" %s=%s", k, v)
	}
	return text
}

// TestChanges checks that every change of a program to a root is reported, and
// that the root itself does not change.
func TestChanges(t *testing.T) {
	needStrict(t)
	for _, tt := range []struct{ name, script, want string }{
		{"nothing", "cat a d/x > /dev/null; ls -R > /dev/null", ". folder"},
		{"write", "printf new > a", ". folder; a file 644 3 copied"},
		{"create", "printf 1 > n; mkdir -p p/q; printf 22 > p/q/r", ". folder; n file 644 1; p folder; p/q folder; p/q/r file 644 2"},
		{"delete", "rm a link; rm -r d", ". folder; a deleted; d deleted; link deleted"},
		{"replace nested folders", "rm -r d; mkdir -p d/e; printf z > d/e/z", ". folder; d folder replaced; d/e folder replaced; d/e/z file 644 1"},
		{"replace a folder", "rm -r d; mkdir d; printf z > d/z", ". folder; d folder replaced; d/z file 644 1"},
		{"replace a file by a folder", "rm a; mkdir a", ". folder; a folder replaced"},
		{"replace a folder by a link", "rm -r d; ln -s b d", ". folder; d link -> b"},
		{"mode", "chmod 700 a; chmod 000 b", ". folder; a file 700 1 copied; b file 0 1 copied"},
		{"mode of a folder", "chmod 700 d/e", ". folder; d folder; d/e folder"},
		{"move", "mv a z", ". folder; a deleted; z file 644 1 copied"},
		{"move a folder", "mv d/e e", ". folder; d folder; d/e deleted; e folder replaced; e/y file 644 5 copied"},
		{"odd names", "printf x > \"$(printf 'new\\nline')\"; printf x > \"$(printf 'inv\\377alid')\"", ". folder; inv\xffalid file 644 1; new\nline file 644 1"},
		{"pipe", "mkfifo p", ". folder; p other"},
		{"append", "printf more >> d/e/y", ". folder; d folder; d/e folder; d/e/y file 644 9 copied"},
		{"put back", "cp -p a k; rm a; mv k a", ". folder; a file 644 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := newRoot(t)
			before := listing(t, root)
			p, out := runIn(t, root, tt.script)
			require.Empty(t, out)
			changes, err := p.Changes(root)
			require.NoError(t, err)
			var got []string
			for _, w := range changes {
				got = append(got, words(w))
			}
			// The root user's overlay marks every new folder as having nothing
			// below it.
			text := strings.ReplaceAll(strings.Join(got, "; "), "p folder replaced; p/q folder replaced", "p folder; p/q folder")
			require.Equal(t, tt.want, text)
			require.Equal(t, before, listing(t, root))
		})
	}
}

// TestContent checks that written files can be read, even if the program
// removed the right to read. No link leads out of the upper folder.
func TestContent(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	p, out := runIn(t, root, "printf secret > n; chmod 000 n; ln -s /etc/passwd l; mkdir m; printf in > m/f; chmod 000 m")
	require.Empty(t, out)
	changes, err := p.Changes(root)
	require.NoError(t, err)
	require.Len(t, changes, 5)
	for name, want := range map[string]string{"n": "secret", "m/f": "in"} {
		f, err := p.Open(root, name)
		require.NoError(t, err, name)
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
		require.NoError(t, f.Close())
	}
	_, err = p.Open(root, "l")
	require.Error(t, err)
	_, err = p.Open(root, "../upper/n")
	require.Error(t, err)
}

func listing(t *testing.T, root string) string {
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		fmt.Fprintln(&b, path, info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			fmt.Fprintf(&b, "%s\n", data)
		}
		return nil
	}))
	return b.String()
}

// TestSurvivors checks that no process of a program remains after it has ended.
// It starts children with their own sessions that ignore signals, and would
// block the test for a quarter of an hour.
func TestSurvivors(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	p, _ := runIn(t, root, `i=0; while [ $i -lt 50 ]; do setsid sh -c "trap '' TERM HUP INT; sleep 1000" > /dev/null 2>&1 & i=$((i+1)); done; printf done > a`)
	changes, err := p.Changes(root)
	require.NoError(t, err)
	require.Len(t, changes, 2)
}

// TestKillInFlight checks that the program is killed immediately when its
// context ends, or on demand. The result states that its exit is unknown.
func TestKillInFlight(t *testing.T) {
	needStrict(t)
	ctx, cancel := context.WithCancel(context.Background())
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p, err := Start(ctx, "", Spec{Argv: []string{"sh", "-c", "echo here; sleep 1000"}}, Stdio{Out: w})
	_ = w.Close()
	require.NoError(t, err)
	line := make([]byte, 5)
	_, err = io.ReadFull(r, line)
	require.NoError(t, err)
	cancel()
	_, err = p.Wait()
	require.Error(t, err)
	_, err = io.ReadAll(r) // ends when no process holds it open
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

// TestRefusals checks that an impossible specification is refused before the
// program starts.
func TestRefusals(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	other := newRoot(t)
	var is unix.Stat_t
	require.NoError(t, unix.Stat(other, &is))
	for _, tt := range []struct {
		name, want string
		spec       Spec
	}{
		{"no program", "names no program", Spec{}},
		{"unknown program", "is not in PATH", Spec{Argv: []string{"no-such-program"}}},
		{"relative root", "not an absolute clean path", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: "x", View: Read}}}},
		{"no view", "there are read, overlay and direct", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: root}}}},
		{"nested roots", "lie in one another", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: root, View: Read}, {Dir: root + "/d", View: Read}}}},
		{"another folder", "another folder is there", Spec{Argv: []string{"true"}, Roots: []Root{{Dir: root, View: Read, Dev: uint64(is.Dev), Ino: is.Ino}}}}, //nolint:unconvert // other widths elsewhere
		{"NUL", "holds a NUL", Spec{Argv: []string{"a\x00b"}}},
		{"level", "does not reach the level", Spec{Argv: []string{"true"}, Require: Strict, without: []string{"landlock"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(context.Background(), "", tt.spec, Stdio{})
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := Start(context.Background(), "/bin/true", Spec{Argv: []string{"true"}}, Stdio{})
	require.ErrorContains(t, err, "does the binary call sandbox.Main?")
}
