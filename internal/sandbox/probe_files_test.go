//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

func out(name string) string  { return filepath.Join(os.Getenv("OUT"), name) }
func root(name string) string { return filepath.Join(os.Getenv("ROOT"), name) }

func readSecret(at func() string) func() error {
	return func() error {
		data, err := os.ReadFile(at())
		if err == nil && string(data) != "secret" {
			err = errors.New("it is not there")
		}
		return err
	}
}

func fileProbes() []probe {
	see, fences := []string{"mounts"}, []string{"mounts", "landlock"}
	return []probe{
		{name: "read outside", stops: fences, run: readSecret(func() string { return out("secret") })},
		{name: "read through a link", stops: fences, run: readSecret(func() string { return root("link") })},
		{name: "read what is masked", stops: see, run: readSecret(func() string { return root("masked") })},
		{name: "list outside", stops: fences, run: func() error { _, err := os.ReadDir(out("")); return notOurs(err, out("secret")) }},
		{name: "write outside", stops: fences, run: func() error { f, err := os.OpenFile(out("secret"), os.O_WRONLY, 0); return closed(f, err) }},
		{name: "write into the root itself", stops: see, run: writesThrough},
		{name: "write a program", stops: []string{"mounts", "landlock"}, run: func() error { return touched("/usr/bin/remit-was-here") }, by: "root"},
		{name: "change the accounts", stops: fences, run: func() error { f, err := os.OpenFile("/etc/group", os.O_WRONLY|os.O_APPEND, 0); return closed(f, err) }, by: "root"},
		{name: "read the passwords", stops: fences, run: func() error { f, err := os.Open("/etc/shadow"); return closed(f, err) }, by: "root"},
		{name: "chmod outside", stops: see, run: func() error { return os.Chmod(out("secret"), 0o666) }},
		{name: "times outside", stops: see, run: func() error { return os.Chtimes(out("secret"), time.Now(), time.Now()) }},
		{name: "attribute outside", stops: see, run: func() error { return unix.Setxattr(out("secret"), "user.x", []byte("x"), 0) }},
		{name: "chmod a device", stops: see, run: func() error { return os.Chmod("/dev/null", 0o666) }, by: "root"},
		{name: "times of a device", stops: see, run: func() error { return os.Chtimes("/dev/full", time.Now(), time.Now()) }, by: "root"},
		{name: "link from outside", stops: fences, run: func() error { return os.Link(out("secret"), out("root/hard")) }},
		{name: "rename out", stops: fences, run: func() error { return renameOut() }},
		{name: "look outside", stops: see, run: func() error { _, err := os.Stat(out("secret")); return err }},
		{name: "kernel settings", stops: []string{"mounts", "landlock"}, run: func() error {
			f, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
			return closed(f, err)
		}, by: "root"},
		{name: "control groups", stops: see, run: func() error { _, err := os.ReadDir("/sys/fs/cgroup"); return notOurs(err, "/sys/fs/cgroup") }},
		{name: "fill the memory", stops: []string{"mounts", "landlock"}, run: fillScratch},
	}
}

func closed(f *os.File, err error) error {
	if err == nil {
		err = f.Close()
	}
	return err
}

func touched(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_ = f.Close()
		err = os.Remove(path)
	}
	return err
}

// notOurs distinguishes the real folder from an empty one of the sandbox.
func notOurs(err error, there string) error {
	if err != nil {
		return err
	}
	_, err = os.Lstat(there)
	return err
}

// writesThrough changes a file of the root, and checks whether that is the real
// one: the overlay has its own device.
func writesThrough() error {
	if err := os.WriteFile(root("plain"), []byte("changed"), 0o600); err != nil {
		return err
	}
	var folder, above unix.Stat_t
	if err := errors.Join(unix.Stat(root(""), &folder), unix.Stat(filepath.Dir(root("")), &above)); err != nil {
		return err
	}
	if folder.Dev != above.Dev {
		return fmt.Errorf("it went elsewhere")
	}
	return nil
}

func renameOut() error {
	if err := os.WriteFile(root("mine"), nil, 0o600); err != nil {
		return err
	}
	return os.Rename(root("mine"), out("mine"))
}

func fillScratch() error {
	f, err := os.Create("/tmp/remit-probe-fill")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	block := make([]byte, 1<<20)
	for range 16 {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}
