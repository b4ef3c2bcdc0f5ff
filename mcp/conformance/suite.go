package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What is installed: the newest suite, which knows both revisions and checks each message against the schema of its own, and
// the last one that was not marked as to change.
const (
	newest  = "0.2.0-alpha.12"
	older   = "0.1.16"
	node    = "22.23.3"
	modern  = "2026-07-28"
	legacy  = "2025-11-25"
	suiteOf = "@modelcontextprotocol/conformance@"
)

// suite is where the suites are installed, by version.
type suite struct {
	node string            // the program
	at   map[string]string // the suites' programs
}

// install installs what is not there yet.
func install(ctx context.Context, log io.Writer) (suite, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return suite{}, errors.New("there is no npm here, from which the suite comes; install Node.js, of any version that has npm")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return suite{}, err
	}
	s := suite{at: map[string]string{}}
	for _, version := range []string{newest, older} {
		dir := filepath.Join(cache, "remit-conformance", version+"-node-"+node)
		if _, err := os.Stat(filepath.Join(dir, "node_modules", ".bin", "conformance")); err != nil {
			_, _ = fmt.Fprintf(log, "conformance: installs %s%s\n", suiteOf, version)
			if err := installIn(ctx, npm, dir, version); err != nil {
				return suite{}, err
			}
		}
		bin := filepath.Join(dir, "node_modules", ".bin")
		s.node, s.at[version] = filepath.Join(bin, "node"), filepath.Join(bin, "conformance")
	}
	return s, nil
}

// installIn installs one version beside its place, and moves it there when it is whole.
func installIn(ctx context.Context, npm, dir, version string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	cmd := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", fresh, "node@"+node, suiteOf+version)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm could not install %s%s; is there a network, and may it reach the registry? %w\n%s", suiteOf, version, err, bytes.TrimSpace(said))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// suiteRun is one run of the suite.
type suiteRun struct{ version, kind, revision string }

// judge runs the scenarios that a revision requires, and those that do not count.
func (s suite) judge(ctx context.Context, j suiteRun, where []string, log io.Writer) (report, error) {
	dir, err := os.MkdirTemp("", "remit-conformance-out-")
	if err != nil {
		return report{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	set := "--requirements"
	if j.version == older {
		set = "--spec-version"
	}
	args := append([]string{s.at[j.version], j.kind, set, j.revision, "-o", dir}, where...)
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, s.node, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	failed := cmd.Run()
	var ended *exec.ExitError
	if failed != nil && !errors.As(failed, &ended) {
		return report{}, failed
	}
	r, err := read(&said)
	r.suiteRun = j
	if err == nil && r.clean() != (failed == nil) { // nothing stands apart here yet
		err = fmt.Errorf("its summary and its exit code say different things: %w", failed)
	}
	if err != nil {
		return report{}, fmt.Errorf("%w\n%s", err, tail(said.Bytes()))
	}
	if !r.clean() || os.Getenv("REMIT_CONFORMANCE_LOG") != "" {
		err = explain(dir, r, log)
	}
	return r, err
}

var (
	scored   = regexp.MustCompile(`^([✓✗]) (\S+): ([0-9]+) passed, ([0-9]+) failed`)
	unscored = regexp.MustCompile(`^  ([✓✗]) (\S+) \(([a-z-]+)\)$`)
)

// read takes the suite's summary.
func read(from io.Reader) (r report, err error) {
	at := map[string]int{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if m := scored.FindStringSubmatch(lines.Text()); m != nil {
			passed, _ := strconv.Atoi(m[3])
			failed, _ := strconv.Atoi(m[4])
			at[m[2]] = len(r.scenarios)
			r.scenarios = append(r.scenarios, scenario{name: m[2], good: m[1] == "✓", passed: passed, failed: failed})
		}
		if m := unscored.FindStringSubmatch(lines.Text()); m != nil {
			i, ok := at[m[2]]
			if !ok {
				return r, fmt.Errorf("scenario %s does not count and is not there", m[2])
			}
			r.scenarios[i].uncounted = m[3]
		}
	}
	if err := lines.Err(); err != nil {
		return r, err
	}
	if len(r.scenarios) == 0 {
		return r, errors.New("the suite said nothing of any scenario")
	}
	return r, nil
}

func tail(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
