package record_test

import (
	"errors"
	"fmt"

	"github.com/remit-dev/remit/revert/record"
)

// Check detects a change of a sealed record.
func Example() {
	salt := make([]byte, record.SaltSize) // outside an example: fresh random bytes
	e, err := record.Seal(record.Record{
		Header: record.Header{Kind: record.KindDenied, Txn: "t_1", Call: "c_1"},
		Body:   &record.Denied{Tool: record.ToolRef{Name: "file_write"}, Stage: "policy", Why: "it is a system file"},
	}, salt)
	if err != nil {
		panic(err)
	}
	r, err := record.Unseal(e)
	if err != nil {
		panic(err)
	}
	denied, _ := r.Body.(*record.Denied)
	fmt.Println(r.Kind, denied.Why)
	e.Body[2] ^= 1
	fmt.Println(errors.Is(e.Check(), record.ErrDamaged))
	// Output:
	// denied it is a system file
	// true
}

// A person can erase the records of a call. The records that bind a session or
// a transaction stay.
func ExampleKind_Erasable() {
	fmt.Println(record.KindDone.Erasable(), record.KindLabelled.Erasable())
	// Output: true false
}
