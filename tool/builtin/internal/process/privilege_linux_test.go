package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

// TestFilesThatRunAsOthers: a setuid file, one with capabilities, and one with an attribute of
// the administrator, each with several names, are after a program what they are after the same
// program without a sandbox, and so are their links. Nothing that a program wrote runs as another user.
func TestFilesThatRunAsOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only the root user gives files what lets them run as others")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("this machine has no setpriv, which runs a program with as few rights as the sandbox gives it")
	}
	fixture := func(t *testing.T, dir string) {
		plainly(t, dir, `mkdir d; for f in s c k; do echo $f > $f; ln $f d/$f; touch -d 2020-01-01 $f; done; chmod 4755 s; echo other > o; mkdir g; echo g > g/f`)
		net := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		require.NoError(t, unix.Setxattr(filepath.Join(dir, "c"), "security.capability", net, 0))
		for _, name := range []string{"k", "g"} {
			require.NoError(t, unix.Setxattr(filepath.Join(dir, name), "trusted.k", []byte("v"), 0))
		}
	}
	const exchange = `python3 -c 'import os; os.rename("k", "t"); os.rename("o", "k"); os.rename("t", "o")'`
	for _, tt := range []struct{ name, script string }{
		{"touch", "touch s c k"},
		{"attribute", `python3 -c 'import os; [os.setxattr(n, "user.n", b"1") for n in ("s", "c", "k")]'`},
		{"write", "echo x >> s; echo x >> c; echo x >> k"},
		{"write of the same", "echo s > s; echo c > c; echo k > k"},
		{"bits", "chmod 700 s; chmod 711 c; chmod 640 k"},
		{"new links", "ln c d/c2; ln k d/k2; ln s d/s2"},
		{"a moved folder", "mv d e; ln o e/o"},
		{"names that change places", exchange},
		{"a file in the place of another", "mv o s; echo new > o; mv o c"},
		{"removal of a name", "rm d/s c"},
		{"a folder of other bits", "chmod 700 g; echo > g/n"},
		{"a folder made anew", "mkdir n; mv g/f n; rmdir g; mv n g"},
	} {
		for _, way := range writeModeCases(t) {
			t.Run(tt.name+way.name, func(t *testing.T) {
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
				other := w.dir + "-plain"
				removable(t, w.dir, other)
				require.NoError(t, os.Mkdir(other, 0o755))
				fixture(t, w.dir)
				fixture(t, other)
				before := listing(t, w.dir, true)
				txn, o := w.shell(t, tt.script)
				cmd := exec.Command("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--", "sh", "-c", tt.script)
				cmd.Dir = other
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				equal(t, listing(t, other, false), listing(t, w.dir, false), o.Text)
				rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err, "%+v", rep)
				equal(t, before, listing(t, w.dir, true), "undo")
			})
		}
	}
}
