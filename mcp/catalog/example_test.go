package catalog_test

import (
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/mcp/catalog"
)

// Clients are told of a change if they see another list: none is not the same as an empty one.
func Example() {
	before := []catalog.Entry{{Name: "book://one", Tool: "s__mcp__read", Object: json.RawMessage(`{"uri":"book://one"}`)}}
	fmt.Println(catalog.Equal(before, before), catalog.Equal(before, nil), catalog.Equal([]catalog.Entry{}, nil))
	// Output:
	// true false false
}
