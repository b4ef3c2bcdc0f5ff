//go:build !linux

package main

// fileSystem cannot detect the file system on this platform.
func fileSystem(string) (kind string, is health) { return "not told by this system", healthy }
