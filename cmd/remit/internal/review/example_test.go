package review_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/review"
	"github.com/remit-dev/remit/tool"
)

func ExampleTools() {
	send, err := tool.Create("send", "", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range review.Tools(send) {
		fmt.Printf("%s %s: %s\n", f.Tool, f.Path, f.What)
	}
	// Output:
	// send /description: the description is missing: a model knows nothing else of the tool
	// send /digest: the fault kit has not graded this declaration
}
