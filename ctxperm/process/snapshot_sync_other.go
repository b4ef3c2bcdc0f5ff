//go:build !darwin && (portable || !linux)

package process

import "os"

func syncPlain(f *os.File) error { return f.Sync() }
