package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Sole takes a turn at work that one opening at a time does, in whichever process. It
// does not wait: ok is false if another opening has the turn. The turn ends with
// release, and with the process.
func (j *Journal) Sole(name string) (release func() error, ok bool, err error) {
	path := filepath.Join(j.dir, name+lockSuffix)
	if err := checkFile(path); err != nil {
		return nil, false, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("turn to %s: %w", name, err)
	}
	err = lockExclusive(f)
	switch {
	case errors.Is(err, errLocked):
		return nil, false, f.Close()
	case err != nil:
		return nil, false, errors.Join(err, f.Close())
	}
	return f.Close, true, nil
}
