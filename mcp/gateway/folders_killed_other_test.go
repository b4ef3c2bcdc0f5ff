//go:build !linux

package gateway_test

// serveDiskKilled serves a test that runs only on Linux.
func serveDiskKilled() { panic("only on Linux") }
