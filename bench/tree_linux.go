package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing/fstest"
	"time"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// sizes returns the sizes of the trees in files, with a hundred files per
// folder.
func sizes() []int { return []int{100, 10_000, 100_000} }

// touch changes three files that exist in each tree.
const touch = "echo more >> f0; echo more >> d0/f1; echo more >> d0/f2"

// trees runs a program that changes three files, in trees of several sizes: it
// starts in the sandbox, and its changes are found, decided, recorded durably
// and applied. It uses an overlay, with and without masks in the policy, and a
// copy of the tree.
func trees(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = sandbox.Discard(dir) }() // a temporary folder
	shim := filepath.Join(dir, "remit")
	build := exec.Command("go", "build", "-o", shim, "./cmd/remit")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building remit: %w\n%s", err, said)
	}
	var all []subject
	var ends []func() error
	for _, way := range collectMethods() {
		for _, n := range sizes() {
			op, end, err := inTree(filepath.Join(dir, fmt.Sprint(way.name, n)), shim, n, way)
			if err != nil {
				return nil, err
			}
			all, ends = append(all, subject{name: way.called(n), op: op, once: way.copies}), append(ends, end)
		}
	}
	t, err := interleave(c, all...)
	for _, end := range ends {
		err = errors.Join(err, end())
	}
	if err != nil {
		return nil, err
	}
	var rows []promiseRow
	for _, way := range collectMethods() {
		for _, n := range sizes()[1:] {
			what := fmt.Sprintf("program that changes 3 files%s, tree of %d files to 100", way.explanation, n)
			if way.copies {
				rows = append(rows, besides("trees", what, t, way.called(n), way.called(sizes()[0])))
				continue
			}
			rows = append(rows, most("trees", what, t, way.called(n), way.called(sizes()[0]), 1.3))
		}
	}
	return rows, nil
}

// collectMethod is a way to collect a program's changes.
type collectMethod struct {
	name, explanation string
	policy            rego.Source
	copies            bool
}

func collectMethods() []collectMethod {
	all := rego.Source{FS: fstest.MapFS{"all.rego": {Data: []byte("package remit\n\nallow contains \"everything\"\n")}}}
	hides := rego.Source{FS: policies.Workspace(), Prefix: policies.Prefix}
	return []collectMethod{
		{"overlay", "", all, false},
		{"masked", " and does not see what the workspace policy masks", hides, false},
		{"copy", " of a copy", all, true},
	}
}

func (w collectMethod) called(n int) string { return fmt.Sprintf("%s %d", w.name, n) }

// inTree creates a tree, and returns a function that runs the program in it.
func inTree(dir, shim string, n int, way collectMethod) (op func(int) error, end func() error, err error) {
	work := filepath.Join(dir, "work")
	if err := grow(work, n); err != nil {
		return nil, nil, err
	}
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "state"))
	if err != nil {
		return nil, nil, err
	}
	e, err := rego.New(rego.Options{Sources: []rego.Source{way.policy}, Timeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	d, err := handle.New(handle.Config{Shim: shim, UseCopies: way.copies, Scratch: filepath.Join(dir, "scratch")})
	if err != nil {
		return nil, nil, err
	}
	rt, err := agent.New(agent.Tools(builtin.Programs()...), agent.Root("workspace", work), agent.Policy(e), agent.Journal(j), agent.Driver(d))
	if err != nil {
		return nil, nil, err
	}
	op = func(int) error {
		tx, err := begun(rt)
		if err != nil {
			return err
		}
		if _, err := tx.Invoke(context.Background(), "shell_run", tool.Args{"script": touch}); err != nil {
			return err
		}
		return tx.Commit(context.Background())
	}
	return op, func() error { return errors.Join(rt.Close(), d.Close(), j.Close()) }, nil
}

// grow creates a tree of n small files, whose folders are old enough to be
// cached.
func grow(work string, n int) error {
	old := time.Now().Add(-time.Hour)
	for i := range n {
		sub := work
		if n > 100 || i > 0 {
			sub = filepath.Join(work, fmt.Sprintf("d%d", i/100))
		}
		if i%100 == 0 || i == 1 {
			if err := os.MkdirAll(sub, 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", i)), []byte("some content\n"), 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(work, "f0"), nil, 0o600); err != nil {
		return err
	}
	return os.Chtimes(work, old, old)
}
