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

// The call must write one file and leave another one alone.
func ExampleAll() {
	type in struct{ Path, Content string }
	wrote := verify.FileContent(func(i in) (string, []byte) { return "file://workspace/" + i.Path, []byte(i.Content) })
	spared := verify.Unchanged(func(in) []string { return []string{"file://workspace/go.mod"} })
	world := textView{now: map[string]string{"file://workspace/a.txt": "hi"}}
	both := verify.All(wrote, spared)
	subject := verify.Subject{Phase: verify.AfterCall, Input: json.RawMessage(`{"Path":"a.txt","Content":"hi"}`), Resources: world}
	fmt.Println(both(context.Background(), subject).Presence())
	// Output:
	// applied
}
