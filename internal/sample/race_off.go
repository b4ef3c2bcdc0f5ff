//go:build !race

package sample

// Racing says that the race detector is on.
const Racing = false
