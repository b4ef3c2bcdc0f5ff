//go:build !unix

package main

import (
	"errors"
	"os"
)

// typedInto returns why no person types into this process, or nil.
func typedInto() error {
	if !isTerminal(os.Stdin) {
		return errors.New("standard input is not a terminal")
	}
	return nil
}
