//go:build !linux || !(amd64 || arm64)

package shim

// Main does nothing here: there is no sandbox to be the shim of.
func Main() {}
