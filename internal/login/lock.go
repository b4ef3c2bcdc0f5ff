package login

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// errHeld says that another process or goroutine holds a lock.
var errHeld = errors.New("it is held")

// lockTimeout bounds the wait for a record's lock. It is longer than a renewal
// takes, or fails.
const lockTimeout = 2 * wait

// lockStore waits for the exclusive lock of a record, among all processes. The
// lock ends with its process. The lock file stays, as waiting processes have it
// open.
func lockStore(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(10 * time.Millisecond) {
		switch err = try(f); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, errHeld) || time.Now().After(end):
			return nil, errors.Join(fmt.Errorf("%s cannot be locked: %w", f.Name(), err), f.Close())
		}
	}
}
