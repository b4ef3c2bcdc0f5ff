//go:build !unix

package execute

import (
	"os"
	"syscall"
)

// resize is no signal: no terminal tells of its size here.
const resize = syscall.Signal(-1)

// forwarded returns the signals that the program gets.
func forwarded() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM} }
