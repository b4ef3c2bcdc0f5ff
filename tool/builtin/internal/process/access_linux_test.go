package process_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
)

// letting is an access control list as the kernel stores it, which lets users do what is
// said and gives the group nothing.
func letting(rights uint16, users ...uint32) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, 2)
	add := func(tag, perm uint16, id uint32) {
		raw = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(raw, tag), perm)
		raw = binary.LittleEndian.AppendUint32(raw, id)
	}
	add(1, rights, 0xffffffff)
	for _, user := range users {
		add(2, rights, user)
	}
	add(4, 0, 0xffffffff)
	add(16, rights, 0xffffffff)
	add(32, 0, 0xffffffff)
	return raw
}

const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// share gives files lists, another group of this user's, and what else only some may have.
func share(t *testing.T, dir string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := unix.Setxattr(at("a"), accessList, letting(6, 1), 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("the file system keeps no access control lists")
	}
	require.NoError(t, err)
	require.NoError(t, unix.Setxattr(at("src/main.go"), accessList, letting(6, 1, 2), 0))
	require.NoError(t, unix.Setxattr(at("src"), accessList, letting(7, 1), 0))
	require.NoError(t, unix.Setxattr(at("src"), defaultList, letting(7, 3), 0))
	require.NoError(t, unix.Setxattr(at("docs"), "user.k", []byte("v"), 0))
	if group, ok := another(); ok {
		require.NoError(t, os.Chown(at("b"), -1, group))
		require.NoError(t, os.Chown(at("src/deep"), -1, group))
		require.NoError(t, os.Chmod(at("src/deep"), 0o2775))
	}
	if os.Getuid() != 0 {
		return
	}
	require.NoError(t, os.Chown(at("docs/readme"), 1234, 4321))
	require.NoError(t, os.Chmod(at("docs/readme"), 0o666))
	for _, name := range []string{"a", "docs", "docs/readme"} {
		require.NoError(t, unix.Setxattr(at(name), "trusted.k", []byte("v"), 0))
	}
	net := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	require.NoError(t, unix.Setxattr(at("b"), "security.capability", net, 0))
	require.NoError(t, unix.Setxattr(at("src/deep/x"), "security.capability", net, 0))
}

// another is a further group of this user's, any one for the root user.
func another() (int, bool) {
	if os.Getuid() == 0 {
		return 4321, true
	}
	groups, err := os.Getgroups()
	at := slices.IndexFunc(groups, func(g int) bool { return g != os.Getegid() })
	if err != nil || at < 0 {
		return 0, false
	}
	return groups[at], true
}

// TestAccessOfPrograms: a program that changes files does to owners, groups, lists and attributes
// what it does anywhere else, and they are back after the undo, and after that of its redo. The policy
// masks a file, so that an overlay has a layer above its folders.
func TestAccessOfPrograms(t *testing.T) {
	python := func(script string) string { return "python3 -c 'import os; " + script + "'" }
	for _, tt := range []struct {
		name, script string
		rootOnly     bool
	}{
		{"redirect", "echo x > a; echo y >> src/main.go; echo z > docs/readme", false},
		{"redirect over capabilities", "echo x > b", false},
		{"sed", "sed -i s/a/b/ a src/main.go", true},
		{"chmod", "chmod g-w a; chmod o+r src/main.go; chmod 700 src", false},
		{"chmod of capabilities", "chmod 700 b; touch -d 2001-01-01 src/deep/x", false},
		{"new in a folder with a list", "echo x > src/new; mkdir src/folder; echo y > src/folder/new", false},
		{"new in a folder of a group", "echo x > src/deep/new; mkdir src/deep/folder; echo y > src/deep/folder/new", false},
		{"write into folders", "echo x > docs/new; echo y > src/new", false},
		{"removal", "rm a b; rm -r src docs", false},
		{"move", "mv src/main.go src/moved; mv src/deep/er src/er", false},
		{"other lists", python(`os.removexattr("a", "` + accessList + `"); os.removexattr("src", "` + defaultList + `"); os.setxattr("b", "user.n", b"1")`), false},
		{"rename a folder", "rm src/deep/x; " + python(`os.rename("src", "moved")`), false},
		{"no list", python(`os.removexattr("src", "` + accessList + `"); os.setxattr("docs", "user.n", b"1")`), false},
	} {
		for i, way := range writeModeCases(t) {
			t.Run(tt.name+way.name, func(t *testing.T) {
				if tt.rootOnly && os.Getuid() != 0 {
					t.Skip("a program of an ordinary user is alone in its sandbox, and can name nobody else in a list")
				}
				dir := newProgramSetup(t, allowAll(), agent.Driver(way.driver)).dir
				removable(t, dir)
				fill(t, dir)
				share(t, dir)
				w := newFastSetupIn(t, dir, allowAll(), agent.Driver(writeModeCases(t)[i].driver)) // which knows nothing of the folder yet
				other := w.dir + "-plain"
				removable(t, w.dir, other)
				require.NoError(t, exec.Command("cp", "-a", w.dir, other).Run())
				before := listing(t, w.dir, true)
				equal(t, listing(t, other, false), listing(t, w.dir, false), "the copy to compare with")
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
				_, err = w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				equal(t, before, listing(t, w.dir, true), "undo of the redo")
			})
		}
	}
}

// TestAttributesOfOverlays: attributes with names that an overlay uses for itself come and stay as
// they do anywhere else, seen through an overlay or in a copy, and are back after the undo.
func TestAttributesOfOverlays(t *testing.T) {
	const script = `echo x >> a; echo y > docs/new; echo z > src/new; chmod 700 docs; python3 -c 'import os
for name in "b", "docs/readme", "src":
    os.setxattr(name, "user.overlay.opaque", b"y"); os.setxattr(name, "user.overlay.own", b"1")
os.setxattr("a", "user.overlay.overlay.k", b"2")
open("made", "w").close(); os.setxattr("made", "user.overlay.whiteout", b"")'`
	dress := func(dir string) {
		for _, name := range []string{"a", "docs", "src/main.go"} {
			for key, value := range map[string]string{"user.overlay.opaque": "y", "user.overlay.z": "1", "user.overlay.overlay.z": "2", "user.k": "v"} {
				if err := unix.Setxattr(filepath.Join(dir, name), key, []byte(value), 0); errors.Is(err, unix.ENOTSUP) {
					t.Skip("the file system keeps no attributes")
				} else {
					require.NoError(t, err)
				}
			}
		}
	}
	for i, way := range writeModeCases(t) {
		t.Run("attributes"+way.name, func(t *testing.T) {
			dir := newProgramSetup(t, allowAll(), agent.Driver(way.driver)).dir
			removable(t, dir)
			fill(t, dir)
			dress(dir)
			w := newFastSetupIn(t, dir, allowAll(), agent.Driver(writeModeCases(t)[i].driver))
			other := w.dir + "-plain"
			removable(t, w.dir, other)
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

// TestSetgid: a folder keeps the bit by which it passes its group on, and a file does not get the one by which
// it runs as its group; the answer says so.
func TestSetgid(t *testing.T) {
	for _, way := range writeModeCases(t) {
		t.Run("setgid"+way.name, func(t *testing.T) {
			w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
			_, o := w.shell(t, "mkdir d; chmod 2755 d; echo x > f; chmod 2755 f")
			for name, bits := range map[string]os.FileMode{"d": os.ModeDir | os.ModeSetgid | 0o755, "f": 0o755} {
				info, err := os.Stat(filepath.Join(w.dir, name))
				require.NoError(t, err)
				require.Equal(t, bits, info.Mode(), name)
			}
			require.Contains(t, o.Text, "workspace/f: the setuid and setgid bits")
			require.NotContains(t, o.Text, "workspace/d:")
		})
	}
}
