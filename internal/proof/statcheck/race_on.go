//go:build race

package statcheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Racing reports whether the race detector is on.
const Racing = true

// share is the used part of the sample: one in so many.
const share = 8

// Program returns the running tests as a program to start often, built into dir
// without the race detector. The detector slows each start and finds nothing in
// processes that are killed or share nothing. Without cgo, it uses the packages
// that the tests without the detector are built from; without symbols, linking
// takes a third less. If the build fails, Program returns the running file.
// The working directory is that of the package.
func Program(dir string) (string, error) {
	bin := filepath.Join(dir, "child.test")
	cmd := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "the tests are their own child: go test -c: %v: %s\n", err, out)
		return os.Executable()
	}
	return bin, nil
}
