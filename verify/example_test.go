package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/verify"
)

// A check of input against output decides after a call, and cannot tell if the
// output is lost.
func ExampleOutput() {
	type in struct{ N int }
	doubled := verify.Output(func(i in, out int) error {
		if out != 2*i.N {
			return errors.New("not the double")
		}
		return nil
	})
	ctx := context.Background()
	subject := verify.Subject{Phase: verify.AfterCall, Input: json.RawMessage(`{"N":2}`), Output: json.RawMessage(`5`)}
	fmt.Println(doubled(ctx, subject).Presence(), doubled(ctx, subject).Findings())
	subject.Phase, subject.Output = verify.Recovery, nil
	fmt.Println(doubled(ctx, subject).Presence())
	// Output:
	// absent [not the double]
	// cannot_tell
}
