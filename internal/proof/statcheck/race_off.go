//go:build !race

package statcheck

import "os"

// Racing reports whether the race detector is on.
const Racing = false

// share is the used part of the sample: one in so many.
const share = 1

// Program returns the running tests as a program to start often: the running
// file.
func Program(string) (string, error) { return os.Executable() }
