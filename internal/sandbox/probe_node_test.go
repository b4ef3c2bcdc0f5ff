//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// someOwner is an unused user number.
const someOwner = 4321

// makeNodes creates files in the root that a program must not be able to use: a
// device, a hard link to a file outside, and a setuid program.
func makeNodes(t *testing.T, o *outside) {
	require.NoError(t, os.Link(filepath.Join(o.dir, "secret"), filepath.Join(o.root, "linked")))
	id, err := os.ReadFile("/usr/bin/id")
	require.NoError(t, err)
	setuid := filepath.Join(o.root, "setuid")
	require.NoError(t, os.WriteFile(setuid, id, 0o755))
	if os.Getuid() != 0 {
		return
	}
	require.NoError(t, os.Chown(setuid, someOwner, someOwner))
	require.NoError(t, os.Chmod(setuid, 0o755|os.ModeSetuid))
	if err := unix.Mknod(filepath.Join(o.root, "device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Log("no device nodes can be made here: " + err.Error())
	}
}

func nodeProbes() []probe {
	return []probe{
		{name: "open a device", stops: []string{"mounts"}, by: "root", run: func() error { f, err := os.Open(root("device")); return closed(f, err) }},
		{name: "make a device", stops: []string{"users", "capabilities", "landlock"}, by: "root", run: func() error {
			return unix.Mknod("/tmp/remit-probe-device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}},
		{name: "make what stands for a deleted file", stops: []string{"mounts", "landlock"}, run: func() error {
			return made(root("whiteout"), unix.Mknod(root("whiteout"), unix.S_IFCHR, 0))
		}},
		{name: "write through a hard link", stops: []string{"mounts"}, run: throughHardLink},
		{name: "read through a link that changes", stops: []string{"mounts", "landlock"}, run: raceLink},
		{name: "look at the outside of a link", stops: []string{"mounts"}, run: func() error { _, err := os.Stat(root("link")); return err }},
		{name: "climb out", stops: []string{"mounts", "landlock"}, run: readSecret(func() string {
			return root("../../../../../../../../../.." + out("secret"))
		})},
		{name: "system folder", stops: []string{"mounts"}, run: func() error { _, err := os.ReadDir("/sys/kernel"); return err }},
		{name: "terminals of the host", stops: []string{"mounts"}, run: func() error {
			var is unix.Stat_t
			if err := unix.Stat("/dev/pts/ptmx", &is); err != nil || fmt.Sprint(is.Dev) != os.Getenv("TERMINALS") {
				return errors.Join(err, errors.New("others"))
			}
			return nil
		}},
	}
}

func made(path string, err error) error {
	if err == nil {
		err = os.Remove(path)
	}
	return err
}

// throughHardLink writes to a name of the root that is also a name of a file
// outside, and checks whether it is still the same file.
func throughHardLink() error {
	f, err := os.OpenFile(root("linked"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString("secret"); err != nil {
		return err
	}
	var is, above unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &is), unix.Stat(filepath.Dir(root("")), &above)); err != nil {
		return err
	}
	if is.Dev != above.Dev {
		return fmt.Errorf("it went elsewhere")
	}
	return nil
}

// raceLink repeatedly exchanges a file of the root for a link that leads
// outside, while it reads the file.
func raceLink() error {
	if err := errors.Join(os.WriteFile(root("turn"), []byte("own"), 0o600), os.Symlink(out("secret"), root("turn-link"))); err != nil {
		return err
	}
	defer func() { _ = os.Remove(root("turn")); _ = os.Remove(root("turn-link")) }()
	done := make(chan error)
	go func() {
		var err error
		for range 200 {
			err = errors.Join(err, unix.Renameat2(unix.AT_FDCWD, root("turn"), unix.AT_FDCWD, root("turn-link"), unix.RENAME_EXCHANGE))
		}
		done <- err
	}()
	found := errors.New("only the file of the root was ever there")
	look := func() {
		if data, err := os.ReadFile(root("turn")); err == nil && string(data) == "secret" {
			found = nil
		}
	}
	for range 200 {
		look()
	}
	if err := <-done; err != nil {
		return err
	}
	// For any result of the race, one of the two is the link.
	if look(); found != nil {
		if data, err := os.ReadFile(root("turn-link")); err == nil && string(data) == "secret" {
			found = nil
		}
	}
	return found
}
