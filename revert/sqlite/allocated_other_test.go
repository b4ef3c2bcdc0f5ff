//go:build !linux

package sqlite_test

import "testing"

// allocated cannot be told here.
func allocated(*testing.T, string) int64 { return 0 }
