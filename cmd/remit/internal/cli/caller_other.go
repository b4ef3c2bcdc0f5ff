//go:build !unix

package cli

import (
	"errors"
	"os"
)

// typedInto returns why no person types into this process, or nil.
func typedInto() error {
	if !IsTerminal(os.Stdin) {
		return errors.New("standard input is not a terminal")
	}
	return nil
}
