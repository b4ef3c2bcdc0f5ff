//go:build !linux

package process

import (
	"os"

	"github.com/remit-dev/remit/internal/sandbox"
)

// lock fails: nothing runs here that would have to be locked.
func lock(*os.File, bool) error { return sandbox.ErrNoSandbox }

func private(string) error { return sandbox.ErrNoSandbox }
