// Package statcheck decides how large the sample of a test run is.
//
// An ordinary run uses a sample, a run with REMIT_LONG set uses everything. A
// run under the race detector uses an eighth of the sample: it takes up to ten
// times as long, mostly for one goroutine that visits states, in which the
// detector finds nothing.
package statcheck

import "os"

// Whole reports whether this run uses everything.
func Whole() bool { return os.Getenv("REMIT_LONG") != "" }

// Size returns the number of things to use: usually, or whole.
func Size(usually, whole int) int {
	if Whole() {
		return whole
	}
	return (usually + share - 1) / share
}

// Stride returns the distance between two used things, 1 for all.
func Stride(usually int) int {
	if Whole() {
		return 1
	}
	return usually * share
}
