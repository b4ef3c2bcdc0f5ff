package effect_test

import (
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
)

// An undeclared class counts as the worst class. An unknown version equals no
// version, not even another unknown one.
func Example() {
	var undeclared effect.Class
	fmt.Println(undeclared.OrPivot())
	var unknown effect.Token
	fmt.Println(unknown.Same(unknown), effect.Absent.Same(effect.Absent))
	// Output:
	// pivot
	// false true
}
