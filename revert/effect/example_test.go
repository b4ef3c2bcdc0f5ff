package effect_test

import (
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
)

// A class that nobody declared is the worst one, and a version that is not known
// equals nothing, not even another one that is not known.
func Example() {
	var undeclared effect.Class
	fmt.Println(undeclared.OrPivot())
	var unknown effect.Token
	fmt.Println(unknown.Same(unknown), effect.Absent.Same(effect.Absent))
	// Output:
	// pivot
	// false true
}
