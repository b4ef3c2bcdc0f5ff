// Package statcheck says how much of what it could look at one run of a test does look at.
//
// An ordinary run takes a sample, that with REMIT_LONG set takes everything, and one
// under the race detector an eighth of the sample: what it takes up to ten times as long
// for is one goroutine going through states, in which there is nothing for the detector
// to find.
package statcheck

import "os"

// Whole reports whether this run looks at everything.
func Whole() bool { return os.Getenv("REMIT_LONG") != "" }

// Size is how many things are looked at, of which there are usually many.
func Size(usually, whole int) int {
	if Whole() {
		return whole
	}
	return (usually + share - 1) / share
}

// Stride is the distance between two things that are looked at, 1 for all.
func Stride(usually int) int {
	if Whole() {
		return 1
	}
	return usually * share
}
