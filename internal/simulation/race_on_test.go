//go:build race

package simulation_test

// racing: the race detector is on, which makes each state ten times as slow.
const racing = true
