//go:build !unix

package main

import (
	"errors"
	"os"
)

// typedInto says why a person does not type into this process.
func typedInto() error {
	if !isTerminal(os.Stdin) {
		return errors.New("standard input is not a terminal")
	}
	return nil
}
