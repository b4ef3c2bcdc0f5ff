package login

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// errHeld says that somebody else has a lock.
var errHeld = errors.New("it is held")

// patience is how long somebody else may be at a record: longer than it takes to renew a token, or to give up doing so.
const patience = 2 * wait

// lockStore waits until nobody else is at a record, in any process. Whoever dies lets go; the file of the lock stays, since who waits has it open.
func lockStore(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		switch err = try(f); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, errHeld) || time.Now().After(end):
			return nil, errors.Join(fmt.Errorf("%s cannot be locked: %w", f.Name(), err), f.Close())
		}
	}
}
