//go:build linux && !race

package kill_test

import (
	"os"
	"testing"
)

// self is the program that is killed: these tests.
func self() string {
	name, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return name
}

// elsewhere has a test run by another program; without the race detector it is run here.
func elsewhere(*testing.T) bool { return false }
