//go:build !linux || !(amd64 || arm64)

package shim

// Main does nothing: this system has no sandbox.
func Main() {}
