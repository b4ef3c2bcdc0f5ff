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
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// cost is a script whose change is large in one dimension.
type cost struct {
	name, explanation string
	before            string // creates the folder "it", if it must exist before
	script            string // the script of the call
	rounds            int
}

func costsOf() []cost {
	return []cost{
		{
			name: "deep", explanation: "in a folder of depth 1,000", rounds: 7,
			before: `mkdir it; cd it; i=0; while [ $i -lt 1000 ]; do mkdir d && cd d; i=$((i+1)); done; echo old > f`,
			// In one step: bash reads all parent folders at each cd.
			script: `cd "it/$(printf 'd/%.0s' $(seq 1000))"; echo new > f; echo more > g`,
		},
		{
			name: "sparse", explanation: "that makes a sparse file of 10 GiB with 1 MiB of data", rounds: 7,
			script: `mkdir it; truncate -s 10G it/f; dd if=/dev/urandom of=it/f bs=1M seek=5000 count=1 conv=notrunc status=none`,
		},
		{
			name: "many", explanation: "that makes 20,000 small files", rounds: 3,
			script: `mkdir it; cd it; i=0; while [ $i -lt 200 ]; do mkdir $i; j=0; while [ $j -lt 100 ]; do echo $i $j > $i/$j; j=$((j+1)); done; i=$((i+1)); done`,
		},
	}
}

// costs compares a sandboxed call, and its revert, with copying its changes
// with cp -a and removing the copy with rm -r. The time of the call includes
// the script itself.
func costs(c clock) ([]promiseRow, error) {
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
	var rows []promiseRow
	for _, one := range costsOf() {
		got, err := one.measure(filepath.Join(dir, one.name), shim, min(c.rounds, one.rounds))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		rows = append(rows,
			most("costs", "call "+one.explanation+", to cp -a and rm -r of it", got, "call", "cp -a and rm -r", 3),
			most("costs", "undo of it, to cp -a and rm -r", got, "undo", "cp -a and rm -r", 3))
	}
	return rows, nil
}

// measure runs the call, copies and removes its result, and reverts the call,
// rounds times after one warm-up.
func (o cost) measure(dir, shim string, rounds int) (times, error) {
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	if err := in(work, "sh", "-c", o.before); err != nil {
		return nil, err
	}
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	all := rego.Source{FS: fstest.MapFS{"all.rego": {Data: []byte("package remit\n\nallow contains \"everything\"\n")}}}
	e, err := rego.New(rego.Options{Sources: []rego.Source{all}, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	d, err := handle.New(handle.Config{Shim: shim, Scratch: filepath.Join(dir, "scratch")})
	if err != nil {
		return nil, err
	}
	rt, err := agent.New(agent.Tools(builtin.Programs()...), agent.Root("workspace", work), agent.Policy(e), agent.Journal(j), agent.Driver(d))
	if err != nil {
		return nil, err
	}
	got := times{}
	for round := -1; round < rounds; round++ {
		took, err := o.once(rt, dir, work)
		if err != nil {
			return nil, err
		}
		if round < 0 && rounds > 1 {
			continue
		}
		for name, seconds := range took {
			got[name] = append(got[name], seconds)
		}
	}
	return got, errors.Join(rt.Close(), d.Close(), j.Close())
}

func (o cost) once(rt *agent.Runtime, dir, work string) (map[string]float64, error) {
	ctx, took := context.Background(), map[string]float64{}
	s, err := rt.Session(ctx, perm.Principal{ID: "ada", Kind: "agent", Roles: []string{"editor"}})
	if err != nil {
		return nil, err
	}
	var tx *agent.Txn
	steps := []struct {
		name string
		do   func() error
	}{
		{"call", func() error {
			if tx, err = s.Begin(ctx); err != nil {
				return err
			}
			if _, err := tx.Invoke(ctx, "shell_run", tool.Args{"script": o.script, "timeout_s": 600}); err != nil {
				return err
			}
			return tx.Commit(ctx)
		}},
		{"cp -a and rm -r", func() error {
			if err := in(dir, "cp", "-a", "work/it", "copy"); err != nil {
				return err
			}
			return in(dir, "rm", "-r", "copy")
		}},
		{"undo", func() error {
			report, err := s.Revert(ctx, tx.ID(), revert.Options{})
			if err == nil && report.State != revert.TxnReverted {
				err = fmt.Errorf("%w: the undo is %s", errAnswer, report.State)
			}
			return err
		}},
	}
	for _, step := range steps {
		start := time.Now()
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		took[step.name] = time.Since(start).Seconds()
	}
	return took, nil
}

// in runs a program in a folder.
func in(dir, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, said)
	}
	return nil
}
