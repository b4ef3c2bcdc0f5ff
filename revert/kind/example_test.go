package kind_test

import (
	"fmt"

	"github.com/remit-dev/remit/revert/kind"
)

// A person can have the records of a call erased. The records that bind a
// session or a transaction stay.
func Example() {
	fmt.Println(kind.Done.Erasable(), kind.Labelled.Erasable())
	// Output: true false
}
