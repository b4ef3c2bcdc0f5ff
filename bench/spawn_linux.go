package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"

	"github.com/remit-dev/remit/internal/sandbox"
)

// spawns compares a sandboxed run of an empty program with bubblewrap and with
// plain exec. The sandbox has one writable root. bubblewrap gets the layers
// that both have: all namespaces, the same folders, and a directly written
// root, since that version has no overlays. It has neither a filter of system
// calls nor Landlock. The shim is the remit command. The sandbox writes the
// root directly, for an equal comparison, and through an overlay, as remit
// does.
func spawns(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = sandbox.Discard(dir) }() // a temporary folder
	root, remit := filepath.Join(dir, "root"), filepath.Join(dir, "remit")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-o", remit, "./cmd/remit")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building remit: %w\n%s", err, said)
	}
	all := []subject{
		{name: "plain exec", op: func(int) error { return exec.Command("/bin/true").Run() }},
		{name: "sandbox", op: inSandbox(remit, root, "")},
		{name: "sandbox with overlay", op: inSandbox(remit, root, dir)},
	}
	bwrap, missing := exec.LookPath("bwrap")
	if missing == nil {
		all = append(all, subject{name: "bubblewrap", op: func(int) error { return exec.Command(bwrap, bubble(root)...).Run() }})
	}
	t, err := interleave(c, all...)
	if err != nil {
		return nil, err
	}
	rows := []promiseRow{besides("spawn", "sandboxed program to plain exec", t, "sandbox with overlay", "plain exec")}
	if missing != nil {
		fmt.Fprintln(os.Stderr, "bench: bubblewrap is not installed (the distribution's package bubblewrap), so the sandbox is not held against it")
		return rows, nil
	}
	return append(rows,
		most("spawn", "sandboxed program to bubblewrap, same root written directly", t, "sandbox", "bubblewrap", 1.3),
		most("spawn", "sandboxed program to bubblewrap, through an overlay", t, "sandbox with overlay", "bubblewrap", 1.3)), nil
}

var errExit = errors.New("the program ended otherwise than it should")

// inSandbox runs the program at the strictest level. It writes its root through
// overlays whose upper folders are in uppers, or directly if uppers is empty.
func inSandbox(shim, root, uppers string) func(int) error {
	var n atomic.Int64
	return func(int) error {
		shown := sandbox.Root{Dir: root, View: sandbox.Direct}
		if uppers != "" {
			shown.View, shown.Upper = sandbox.Overlay, filepath.Join(uppers, fmt.Sprint("upper-", n.Add(1)))
			if err := os.Mkdir(shown.Upper, 0o700); err != nil {
				return err
			}
		}
		p, err := sandbox.Start(context.Background(), sandbox.Shim(shim), sandbox.Spec{
			Argv: []string{"/bin/true"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: root, Require: sandbox.Strict,
			Roots: []sandbox.Root{shown},
		}, sandbox.Stdio{})
		if err != nil {
			return err
		}
		exit, err := p.Wait()
		if err == nil && exit.Code != 0 {
			err = errExit
		}
		return errors.Join(err, p.Close())
	}
}

// bubble returns bubblewrap's arguments: the folders that the sandbox shows.
func bubble(root string) []string {
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin"}
	for _, path := range sandbox.System() {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if target, err := os.Readlink(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			args = append(args, "--symlink", target, path)
			continue
		}
		args = append(args, "--ro-bind", path, path)
	}
	return append(args, "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--proc", "/proc", "--dev", "/dev",
		"--bind", root, root, "--chdir", root, "/bin/true")
}
