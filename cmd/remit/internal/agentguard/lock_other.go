//go:build !unix

package agentguard

import "os"

// lockFile does nothing: this system has no record of a server.
func lockFile(*os.File) error { return nil }

// isLocked returns false: no process locks a file.
func isLocked(*os.File) bool { return false }
