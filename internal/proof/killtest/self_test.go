//go:build linux

package killtest_test

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

// self returns the program to kill: these tests.
var self = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "remit-kill-child-")
	if err != nil {
		panic(err)
	}
	leftBehind = dir
	program, err := statcheck.Program(dir)
	if err != nil {
		panic(err)
	}
	return program
})

// elsewhere runs a test in the program to kill, if that is another one, without
// the race detector. Recovery after each kill would be slow under the detector,
// and its own tests use the detector.
func elsewhere(t *testing.T) bool {
	own, err := os.Executable()
	require.NoError(t, err)
	if self() == own {
		return false
	}
	out, err := exec.CommandContext(t.Context(), self(), "-test.v", "-test.run=^"+t.Name()+"$").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	return true
}
