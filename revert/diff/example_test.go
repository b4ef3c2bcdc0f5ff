package diff_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/diff"
)

// Text turns a Delta of two versions into a patch for git apply.
func Example() {
	d := diff.Delta{
		Resource: "file://workspace/now",
		Before:   diff.ResourceVersion{Type: "link", Target: "v1"},
		After:    diff.ResourceVersion{Type: "link", Target: "v2"},
	}
	t, err := d.Text(context.Background(), "now")
	if err != nil {
		panic(err)
	}
	fmt.Print(t.Patch)
	// Output:
	// diff --git a/now b/now
	// index 28c218c44b49222f91536daf5b4d9871638edc8e..8494ac27064713465d43ddea83398365ac0ba721 120000
	// --- a/now
	// +++ b/now
	// @@ -1,1 +1,1 @@
	// -v1
	// \ No newline at end of file
	// +v2
	// \ No newline at end of file
}
