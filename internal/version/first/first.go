// Package first lets a program print its version before most other packages are
// initialized: installers, editors and shell prompts start remit only for it.
// It imports only packages of the standard library that come early.
package first

import (
	"os"
	"syscall"

	"github.com/remit-dev/remit/internal/version"
)

var _ = begin()

// begin handles only the plain command, and leaves flags and mistakes to the
// command itself. It writes without package os, which would end the process at
// a pipe without a reader: the command says so.
func begin() bool {
	if len(os.Args) != 2 || os.Args[1] != "version" {
		return false
	}
	if _, err := syscall.Write(syscall.Stdout, []byte(version.Read().String()+"\n")); err != nil {
		return false
	}
	os.Exit(0)
	return true
}
