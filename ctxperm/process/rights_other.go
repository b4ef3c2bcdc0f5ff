//go:build !linux

package process

// overrides is not asked here: no program runs.
func overrides() bool { return false }
