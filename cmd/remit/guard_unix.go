//go:build unix

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// typedInto says why a person does not type into this process.
func typedInto() error {
	fd := int(os.Stdin.Fd())
	// Only a process whose own terminal it is can ask this.
	foreground, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	switch {
	case !isTerminal(os.Stdin):
		return errors.New("standard input is not a terminal")
	case err != nil:
		return errors.New("standard input is the terminal of other processes")
	case foreground != unix.Getpgrp():
		return errors.New("this process does not run in the foreground of its terminal")
	}
	return nil
}
