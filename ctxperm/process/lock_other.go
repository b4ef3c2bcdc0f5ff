//go:build !linux

package process

import (
	"os"

	"github.com/remit-dev/remit/internal/sandbox"
)

// lock returns an error: nothing runs here that needs a lock.
func lock(*os.File, bool) error { return sandbox.ErrNoSandbox }

func private(string) error { return sandbox.ErrNoSandbox }
