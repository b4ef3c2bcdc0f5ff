//go:build !race

package statcheck

import "os"

// Racing says whether the race detector is on.
const Racing = false

// share is the part of the sample that is looked at: one in so many.
const share = 1

// Program is the running tests as a program to be started often: the file that runs.
func Program(string) (string, error) { return os.Executable() }
