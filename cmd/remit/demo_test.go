package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
)

const quickstart = "../../examples/quickstart/"

// build makes the command as a user gets it.
func build(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"sh", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	bin, err := builtOnce()
	require.NoError(t, err)
	return bin
}

func demo(t *testing.T, remit string) (string, error) {
	t.Helper()
	out, err := exec.Command("sh", quickstart+"demo.sh", remit).CombinedOutput()
	return string(out), err
}

// TestDemo runs the quick start as its reader does, and shows that it cannot
// say IDENTICAL of a command that does not keep its promises.
func TestDemo(t *testing.T) {
	remit := build(t)
	out, err := demo(t, remit)
	require.NoError(t, err, out)
	require.True(t, strings.HasSuffix(out, "IDENTICAL\n"), out)
	require.Contains(t, out, "policy.rego:17")
	caught := 3 // a write, an edit and a program
	if strings.Contains(out, "remit doctor") {
		caught = 2 // this machine has no sandbox
	}
	require.Equal(t, caught, strings.Count(out, "did not verify, reverted"), out)

	for name, body := range map[string]string{
		"does nothing":       `exit 0`,
		"only says so":       `exit 5`,
		"reverts nothing":    `[ "$1" != revert ] || exit 0; exec "$REMIT" "$@"`,
		"reverts too little": `[ "$1" != revert ] || exec rm workspace/notes/todo.txt; exec "$REMIT" "$@"`,
		"leaves something":   `"$REMIT" "$@"; code=$?; [ "$1" != revert ] || mkdir workspace/left; exit $code`,
		"lets it pass":       `"$REMIT" "$@"; code=$?; [ "$1" != run ] || echo x >workspace/config/site.ini; exit $code`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("REMIT", remit)
			fake := filepath.Join(t.TempDir(), "remit")
			require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\n"+body+"\n"), 0o700))
			out, err := demo(t, fake)
			require.Error(t, err, out)
			require.Contains(t, out, "FAILED")
			require.NotContains(t, out, "IDENTICAL")
		})
	}
}

// TestDemoPolicy holds the policy of the quick start to its own tests.
func TestDemoPolicy(t *testing.T) {
	engine, err := policyfile.Load([]string{quickstart + "policy.rego"}, true)
	require.NoError(t, err)
	report, err := engine.Test(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Results, 5)
	require.Empty(t, report.Failed())
	require.Empty(t, report.Uncovered)
}
