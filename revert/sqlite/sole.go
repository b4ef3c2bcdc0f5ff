package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Sole acquires a name for work that only one opening may do at a time, in any
// process. It does not wait: ok is false if another opening has the name.
// release, or the end of the process, releases it.
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
