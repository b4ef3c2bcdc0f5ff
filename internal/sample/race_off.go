//go:build !race

package sample

// Racing says whether the race detector is on.
const Racing = false

// share is the part of the sample that is looked at: one in so many.
const share = 1
