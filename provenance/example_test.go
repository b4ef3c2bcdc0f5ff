package provenance_test

import (
	"fmt"

	"github.com/remit-dev/remit/provenance"
)

func ExampleSource_OrUnknown() {
	fmt.Println(provenance.Source{}.OrUnknown().Kind)
	// Output: unknown
}

func ExampleRating_Check() {
	fmt.Println(provenance.Unsafe.Check(), provenance.Rating("meh").Check())
	// Output: <nil> "meh" is no rating; valid are good, bad, wrong, unsafe
}
