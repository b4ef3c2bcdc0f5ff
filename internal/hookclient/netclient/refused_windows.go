package netclient

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isRefused reports whether nobody listens.
func isRefused(err error) bool { return errors.Is(err, windows.WSAECONNREFUSED) }
