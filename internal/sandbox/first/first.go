// Package first makes a program its own shim before most else of it is
// initialised: a program with much in it would else initialise all of that for
// every sandbox that it starts.
package first

import "github.com/remit-dev/remit/internal/shim"

var _ = begin()

func begin() bool {
	shim.Main()
	return true
}
