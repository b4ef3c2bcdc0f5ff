// Package atomicfile replaces small private files atomically.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Replace writes data to the file at path, which only this user may read. A
// process that dies, or a power failure, leaves either the old or the new file:
// the content is on stable storage before the file gets its name, and the name
// is durable before Replace returns. If two processes replace a file at once,
// one wins. A process that dies can leave a temporary file beside it, whose
// name begins with that of the file.
func Replace(path string, data []byte) error {
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // of mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(data)
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(name string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync a folder
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
