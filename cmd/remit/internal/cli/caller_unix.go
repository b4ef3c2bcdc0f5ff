//go:build unix

package cli

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// typedInto returns why no person types into this process, or nil.
func typedInto() error {
	fd := int(os.Stdin.Fd())
	// The call succeeds only for the process's own terminal.
	foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	switch {
	case !IsTerminal(os.Stdin):
		return errors.New("standard input is not a terminal")
	case err != nil:
		return errors.New("standard input is the terminal of other processes")
	case foreground != unix.Getpgrp():
		return errors.New("this process does not run in the foreground of its terminal")
	}
	return nil
}
