//go:build unix

package watch

import (
	"os"
	"os/signal"
	"syscall"
)

// hangUps gets the signals of a terminal that goes away. Without it, they end
// the process before it restores the terminal.
func hangUps() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP, syscall.SIGQUIT)
	return c
}
