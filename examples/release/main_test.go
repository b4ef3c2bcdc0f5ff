package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// TestMain makes the test binary the program itself for the processes that
// tests start, and the first process of their sandboxes.
func TestMain(m *testing.M) {
	process.Main()
	switch os.Getenv(beEnv) {
	case "program":
		main()
		os.Exit(0)
	case "doomed":
		runUntilKilled()
	}
	os.Exit(m.Run())
}

const beEnv = "REMIT_TEST_BE"

// program returns the example as its reader starts it, as a separate process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	need(t)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), beEnv+"=program", "TMPDIR="+t.TempDir())
	return cmd
}

func need(t *testing.T) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no " + name)
		}
	}
}

func needSandbox(t *testing.T) {
	t.Helper()
	p, err := sandbox.Start(t.Context(), "", sandbox.Spec{Argv: []string{"true"}, Require: sandbox.Strict}, sandbox.Stdio{})
	if err != nil {
		t.Skip("there is no sandbox: " + err.Error())
	}
	_, err = p.Wait()
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

// runProgram runs the program and requires success.
func runProgram(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// vary matches the parts that differ from run to run: the number of folders of
// git's objects, and with it the number of changes, IDs, ports and times.
var vary = regexp.MustCompile(`(tree +(IDENTICAL, )?|shell_run .*?|of )\d+( things| changes| more)|\b[tc]_[a-z0-9]{12}\b|127\.0\.0\.1:\d+|#[0-9a-f]{12}\.|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// TestReadme runs each command of the README, and compares the output with the
// README. A line "…" matches any lines.
func TestReadme(t *testing.T) {
	needSandbox(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	sessions := regexp.MustCompile("(?s)```\n\\$ go run ./examples/release ?([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, sessions, 4)
	for _, session := range sessions {
		t.Run("release "+session[1], func(t *testing.T) {
			t.Parallel()
			out := runProgram(t, program(t, strings.Fields(session[1])...))
			want := regexp.QuoteMeta(vary.ReplaceAllString(strings.TrimSpace(session[2]), "$1 N$3"))
			want = strings.ReplaceAll(want, "…\n", `(.*\n)*?`)
			require.Regexp(t, `^\s*`+want+`\s*$`, vary.ReplaceAllString(out, "$1 N$3"))
		})
	}
}

// TestModes checks that everything that can be reverted is reverted in each
// mode, by root and by an ordinary user.
func TestModes(t *testing.T) {
	needSandbox(t)
	for _, args := range []string{"", "-kill", "-foreign tree", "-kill -foreign service", "-commit -foreign database"} {
		t.Run("release "+args, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, strings.Fields(args)...)
			if os.Getuid() == 0 {
				ordinary(t, cmd)
			}
			out := runProgram(t, cmd)
			require.NotContains(t, out, "NO PROGRAM RAN")
			require.Regexp(t, `shell_run +\d+ changes reverted`, out)
		})
	}
}

// TestKept checks that the command can read a kept folder, and that no second
// world is created there.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	runProgram(t, program(t, "-in", dir))
	for _, name := range []string{"workspace/CHANGELOG.md", "packages.db", "state/journal.db"} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	out, err := program(t, "-in", dir).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "file exists")
}

func TestUsage(t *testing.T) {
	for _, args := range []string{"now", "-foreign nothing", "-kill -commit", "-what"} {
		out, err := program(t, strings.Fields(args)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 2, exit.ExitCode(), "%s", out)
		require.Contains(t, string(out), "-foreign PART")
	}
}

// TestCheck checks that the check finds each deviation.
func TestCheck(t *testing.T) {
	need(t)
	report := func(tools ...string) (r revert.Report) {
		for _, name := range tools {
			r.Items = append(r.Items, revert.ResourceResult{Tool: name, Result: effect.Result{Outcome: effect.Failed}})
		}
		return r
	}
	told := report("team_tell")
	for name, test := range map[string]struct {
		c      choices
		spoil  func(t *testing.T, w *releaseEnv)
		report revert.Report
		want   string
	}{
		"all is well":    {report: told},
		"a file is left": {report: told, want: "tree", spoil: func(t *testing.T, w *releaseEnv) { write(t, w, "left", "x") }},
		"a file is gone": {report: told, want: "tree", spoil: func(t *testing.T, w *releaseEnv) {
			require.NoError(t, os.Remove(filepath.Join(w.workspace(), "VERSION")))
		}},
		"other bytes":  {report: told, want: "tree", spoil: func(t *testing.T, w *releaseEnv) { write(t, w, "VERSION", "1.4.3\n") }},
		"another time": {report: told, want: "tree", spoil: func(t *testing.T, w *releaseEnv) { write(t, w, "VERSION", "1.4.2\n") }},
		"another mode": {report: told, want: "tree", spoil: func(t *testing.T, w *releaseEnv) {
			require.NoError(t, os.Chmod(filepath.Join(w.workspace(), "bin/greet"), 0o700))
		}},
		"a row is left": {report: told, want: "database", spoil: func(t *testing.T, w *releaseEnv) {
			require.NoError(t, w.sql(t.Context(), "INSERT INTO history (what) VALUES ('x')"))
		}},
		"a table is left": {report: told, want: "database", spoil: func(t *testing.T, w *releaseEnv) { require.NoError(t, w.sql(t.Context(), "CREATE TABLE more (x)")) }},
		"a thing is left": {report: told, want: "service", spoil: func(_ *testing.T, w *releaseEnv) { w.site.replace("/releases/r9", "{}") }},
		"a letter left": {report: told, want: "letters", spoil: func(t *testing.T, w *releaseEnv) {
			require.NoError(t, os.WriteFile(filepath.Join(w.mail(), "x"), nil, 0o600))
		}},
		"no letter left":   {c: choices{commit: true}, report: report("mail_send", "team_tell"), want: "letters"},
		"not said":         {report: report(), want: "report"},
		"too much is said": {report: report("team_tell", "file_edit"), want: "report"},
		"theirs was lost":  {c: choices{foreign: "tree"}, report: report("file_edit", "team_tell"), want: "tree", spoil: func(t *testing.T, w *releaseEnv) { write(t, w, "CHANGELOG.md", "ours") }},
		"theirs was undone": {c: choices{foreign: "database"}, report: report("sql_execute", "team_tell"), want: "database", spoil: func(t *testing.T, w *releaseEnv) {
			require.NoError(t, w.sql(t.Context(), "UPDATE releases SET state = 'current' WHERE id = 2"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := newReleaseEnv(t.Context(), t.TempDir())
			require.NoError(t, err)
			defer func() { require.NoError(t, w.site.server.Close()) }()
			before, err := w.snapshot(t.Context())
			require.NoError(t, err)
			var out bytes.Buffer
			teller := &progressWriter{out: &out, site: w.site.url}
			left, err := w.changeConcurrently(t.Context(), teller, test.c)
			require.NoError(t, err)
			if test.spoil != nil {
				test.spoil(t, w)
			}
			err = w.check(context.Background(), teller, test.c, before, left, test.report)
			if test.want == "" {
				require.NoError(t, err)
				require.Equal(t, 3, strings.Count(out.String(), "IDENTICAL"))
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

func write(t *testing.T, w *releaseEnv, name, content string) {
	require.NoError(t, os.WriteFile(filepath.Join(w.workspace(), name), []byte(content), 0o644))
}
