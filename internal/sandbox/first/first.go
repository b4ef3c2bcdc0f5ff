// Package first makes a program its own shim before anything else of it is
// initialised.
package first

import "github.com/remit-dev/remit/internal/sandbox"

var _ = begin()

func begin() bool {
	sandbox.Main()
	return true
}
