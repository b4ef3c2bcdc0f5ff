package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// part is one run of go test.
type part struct {
	name  string
	about string
	args  []string
	lines int // number of its tests that report
}

// parts returns the parts in their order: first the part that finds a mistake
// in the core soonest, last the parts that rely on the other tests.
func parts() []part {
	return []part{
		{"simulation", "seeds of a world of several processes", []string{"-run", "^(TestSimulation|TestHammer)$", "./internal/proof/simulation"}, 2},
		{"matrix", "crash matrix on a simulated disk and journal", []string{"-run", "^TestCrashMatrix$", "./internal/proof/crash"}, 1},
		{"corruption", "each bit flipped and each length of a small journal's files", []string{"-run", "^TestCorruption$", "./revert/sqlite"}, 1},
		{"faults", "each system call of a process fails, in each way", []string{"-run", "^TestFaults$", "./internal/proof/killtest"}, 1},
		{"kills", "real processes killed at work, in recovery and while they revert", []string{"-run", "^TestKills$", "./internal/proof/killtest"}, 1},
		{"long", "runs of 200 calls killed at random instants, recovered and reverted", []string{"-run", "^TestKilledLongRun$", "./cmd/remit"}, 1},
		{"programs", "random programs in the sandbox, reverted, redone and reverted again", []string{"-run", "^TestRandomPrograms", "./internal/proof/randprog"}, 2},
		{"grades", "built-in tools in the fault kit for tool authors", []string{"-run", "^TestGrades$", "./tool/builtin/...", "./revert/reverttest"}, 5},
		{"git", "random sequences of git commands in the sandbox, reverted and redone", []string{"-run", "^TestGit$", "./internal/proof/gitrun"}, 1},
		{"sessions", "1,000 MCP sessions at once on one server, some of them hostile", []string{"-run", "^TestManySessions$", "./cmd/remit"}, 2},
		{"load", "64 clients for ten minutes on a gateway with servers that break down and a retention of a minute", []string{"-run", "^TestLoad$", "./cmd/remit"}, 1},
		{"clients", "real coding agents from npm, what their hooks and their models receive", []string{"-run", "^TestClients$", "./internal/proof/agentclients"}, 1},
		{"console", "200 hostile texts on each page of the console", []string{"-run", "^TestHostileTexts$", "./console"}, 1},
		{"browser", "the console in Chromium: tasks by clicks and by keys, axe-core", []string{"-C", "console/browsertest", "-run", "^(TestAccessible|TestBy|TestHostileNames)", "."}, 1},
		{"mutants", "seeded bugs, each shown to the tests", []string{"-run", "^TestSeededBugs$", "./internal/proof/mutation"}, 1},
	}
}

// result is one line of the table.
type result struct {
	what, count string
	violations  string
	failed      bool
	took        time.Duration // of its part
}

var proved = regexp.MustCompile(`proved: ([^:]+): ([^,]+), ([0-9]+) violations`)

// run runs a part at its full size. The log of its tests goes to standard
// error.
func (p part) run(ctx context.Context) ([]result, error) {
	args, dir := p.args, ""
	if args[0] == "-C" { // a module of its own
		dir, args = args[1], args[2:]
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout", "3h"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REMIT_PROVE=1", "REMIT_LONG=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found, err := read(out, os.Stderr)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return found, err
	}
	if len(found) != p.lines {
		return found, fmt.Errorf("%d of its tests say what they proved, want %d", len(found), p.lines)
	}
	return found, nil
}

// read collects the reports in the lines of go test -json, and repeats the
// tests' output.
func read(from io.Reader, to io.Writer) (found []result, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e struct{ Action, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action != "output" && e.Action != "build-output" {
			continue
		}
		if !strings.HasPrefix(e.Output, "=== ") {
			_, _ = io.WriteString(to, e.Output)
		}
		if m := proved.FindStringSubmatch(e.Output); m != nil {
			found = append(found, result{what: m[1], count: m[2], violations: m[3]})
		}
	}
	return found, lines.Err()
}

// table returns the table that is printed, and that the page on correctness
// shows.
func table(all []result) string {
	var b strings.Builder
	b.WriteString("| what | how many | violations | took |\n| --- | ---: | ---: | ---: |\n")
	for _, r := range all {
		count, violations := r.count, r.violations
		if r.failed {
			count, violations = "", "FAILED"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.what, count, violations, r.took.Round(time.Second))
	}
	return b.String()
}
