//go:build !linux

package sqlite

import "os"

// writeOut does nothing: the system decides when it writes a file to disk.
func writeOut(*os.File) {}

// bootID is unknown on this system.
func bootID() string { return "" }
