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

// self is the program that is killed: these tests.
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

// elsewhere has a test run by the program that is killed where that is another one, which
// has no race detector: what puts the world in order after each kill would be slow here,
// too, and is tried with the detector where it belongs.
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
