//go:build linux && race

package kill_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// self is the program that is killed: these tests, built without the race detector, which
// makes each start of them slow and has nothing to find where a process ends. Where that
// cannot be built the tests are their own child.
var self = sync.OnceValue(func() string {
	own, err := os.Executable()
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "remit-kill-child-")
	if err != nil {
		return own
	}
	leftBehind = dir
	bin := filepath.Join(dir, "child.test")
	if exec.Command("go", "test", "-c", "-o", bin, ".").Run() != nil {
		return own
	}
	return bin
})

// elsewhere has a test run by the program that has no race detector: what puts the world
// in order after each kill would be slow here, too, and is tried with the detector where
// it belongs.
func elsewhere(t *testing.T) bool {
	own, err := os.Executable()
	require.NoError(t, err)
	bin := self()
	if bin == own {
		return false
	}
	out, err := exec.CommandContext(t.Context(), bin, "-test.v", "-test.run=^"+t.Name()+"$").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	return true
}
