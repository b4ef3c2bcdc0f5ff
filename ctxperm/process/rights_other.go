//go:build !linux

package process

// overrides is unused here: no program runs.
func overrides() bool { return false }
