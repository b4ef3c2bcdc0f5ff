package disclosure_test

import (
	"fmt"

	"github.com/remit-dev/remit/revert/disclosure"
	"github.com/remit-dev/remit/revert/record"
)

// A reader who knows the leaf learns why the call was denied, and nothing about
// its input.
func Example() {
	e, err := record.Seal(record.Record{
		Header: record.Header{Kind: record.KindDenied, Txn: "t_1", Call: "c_1"},
		Body:   &record.Denied{Tool: record.ToolRef{Name: "pay"}, Input: []byte(`{"pin":1234}`), Stage: "policy", Why: "the limit is reached"},
	}, []byte("outside: random!")) // outside an example: fresh random bytes
	if err != nil {
		panic(err)
	}
	d, err := disclosure.Of(e, "why")
	if err != nil {
		panic(err)
	}
	h, err := d.Verify(e.Leaf)
	if err != nil {
		panic(err)
	}
	fmt.Println(h.Kind, h.Call)
	for _, f := range d.Fields {
		if f.Value != "" {
			fmt.Println(f.Name, f.Value)
		}
	}
	d.Fields[len(d.Fields)-1].Value = `"the tool is broken"`
	_, err = d.Verify(e.Leaf)
	fmt.Println(err)
	// Output:
	// denied c_1
	// why "the limit is reached"
	// disclosure: it does not fit the leaf
}
