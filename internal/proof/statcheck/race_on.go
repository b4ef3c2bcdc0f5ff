//go:build race

package statcheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Racing says whether the race detector is on.
const Racing = true

// share is the part of the sample that is looked at: one in so many.
const share = 8

// Program is the running tests as a program to be started often: built into dir without
// the race detector, which makes each start slow and has nothing to find in processes
// that are killed, or that share nothing. Where it cannot be built the tests are their
// own child. The working directory is that of the package.
func Program(dir string) (string, error) {
	bin := filepath.Join(dir, "child.test")
	out, err := exec.Command("go", "test", "-c", "-o", bin, ".").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "the tests are their own child: go test -c: %v: %s\n", err, out)
		return os.Executable()
	}
	return bin, nil
}
