package journaltest_test

import (
	"fmt"
	"testing"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
)

// The test of a store creates a new storage and returns a function that opens
// it. Each memory journal has its own storage, so this one does not pass.
func ExampleRun() {
	_ = func(t *testing.T) {
		journaltest.Run(t, func(*testing.T) journaltest.Opener {
			return func(*testing.T) journal.Journal { return journal.Memory() }
		})
	}
}

// Entries for tests are sealed with a fixed salt, so that equal ones are equal.
func ExampleEntry() {
	e := journaltest.Entry(record.Header{Txn: "t_1", Call: "c_1"}, "file_write")
	fmt.Println(e.Header.Kind, e.Header.Txn, e.Header.Call)
	fmt.Println(string(e.Body))
	fmt.Println(e.Check())
	// Output:
	// invalid t_1 c_1
	// {"tool":{"name":"file_write"},"why":"for a test"}
	// <nil>
}
