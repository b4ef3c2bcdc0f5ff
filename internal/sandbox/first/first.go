// Package first makes a program its own shim before most other packages are
// initialized. Otherwise a large program would initialize all of them for every
// sandbox that it starts.
package first

import "github.com/remit-dev/remit/internal/shim"

var _ = begin()

func begin() bool {
	shim.Main()
	return true
}
