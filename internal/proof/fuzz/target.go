package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is one fuzz target.
type target struct{ name, pkg string }

// find lists the targets of all packages, in order.
func find(ctx context.Context, do command) (all []target, err error) {
	out, err := do(ctx, "test", "-json", "-list", "^Fuzz", "./...")
	if err != nil {
		return nil, fmt.Errorf("listing the targets: %w\n%s", err, out)
	}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Package, Output string }
		if json.Unmarshal(line, &e) != nil || e.Action != "output" || !strings.HasPrefix(e.Output, "Fuzz") {
			continue
		}
		all = append(all, target{name: strings.TrimSpace(e.Output), pkg: e.Package})
	}
	if len(all) == 0 {
		return nil, errors.New("there are no targets: run it from the top of the repository")
	}
	slices.SortFunc(all, func(a, b target) int {
		if a.pkg != b.pkg {
			return strings.Compare(a.pkg, b.pkg)
		}
		return strings.Compare(a.name, b.name)
	})
	return all, nil
}

// result is the result of a target.
type result struct {
	executions  int
	interesting int
	failed      bool
	output      []byte // output of go test
}

func (r result) String() string {
	if r.failed {
		return fmt.Sprintf("FOUND SOMETHING after %d executions", r.executions)
	}
	return fmt.Sprintf("%d executions, %d of interest", r.executions, r.interesting)
}

// progress matches the lines that go test prints every few seconds, and at the
// end.
var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: .*execs: (\d+) .*\(total: (\d+)\)`)

// fuzz runs a target. A target without inputs counts as failed: it proved
// nothing.
func (t target) fuzz(ctx context.Context, do command, long time.Duration) (r result) {
	out, err := do(ctx, "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", long.String(), t.pkg)
	if all := progress.FindAllSubmatch(out, -1); len(all) > 0 {
		last := all[len(all)-1]
		r.executions, _ = strconv.Atoi(string(last[1]))
		r.interesting, _ = strconv.Atoi(string(last[2]))
	}
	r.failed = err != nil || r.executions == 0
	r.output = out
	return r
}
