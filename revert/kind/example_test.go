package kind_test

import (
	"fmt"

	"github.com/remit-dev/remit/revert/kind"
)

// What is said of a call can be destroyed when somebody asks for it. What binds a
// session or a transaction cannot.
func Example() {
	fmt.Println(kind.Done.Erasable(), kind.Labelled.Erasable())
	// Output: true false
}
