package provenance_test

import (
	"fmt"

	"github.com/remit-dev/remit/provenance"
)

func ExampleSource_OrUnknown() {
	fmt.Println(provenance.Source{}.OrUnknown().Kind)
	// Output: unknown
}
