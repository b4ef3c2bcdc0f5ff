package ctxperm_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
)

// A context without a call cannot authorize an access.
func ExampleAuthorize() {
	write := perm.ResourceAccess{Action: perm.Write, Resource: "file://workspace/a.txt"}
	_, err := ctxperm.Authorize(context.Background(), ctxperm.ToolContext{}, write)
	fmt.Println(err)
	// Output: the call has ended; its context and permits reach nothing any more
}
