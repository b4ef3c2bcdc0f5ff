//go:build unix

package execute

import (
	"os"
	"syscall"
)

// resize is the signal for a new size of the terminal.
const resize = syscall.SIGWINCH

// forwarded returns the signals that the program gets.
func forwarded() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, resize}
}
