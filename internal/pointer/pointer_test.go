package pointer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/pointer"
)

// TestStrictest: no value at a place has a stricter declaration than the place.
func TestStrictest(t *testing.T) {
	for _, tt := range []struct {
		declared map[string]int
		place    string
		want     int
	}{
		{nil, "/a", 9},
		{map[string]int{"": 1}, "", 1},
		{map[string]int{"": 1, "/a": 2, "/a/b": 3}, "/a/b/c", 3},
		{map[string]int{"": 3, "/a": 2}, "/a/b", 2},
		{map[string]int{"": 1, "/a/b": 3}, "/a", 1},
		{map[string]int{"": 1, "/a": 3}, "/*", 3},
		{map[string]int{"": 3, "/a": 1}, "/*", 3},
		{map[string]int{"/a": 1}, "/*", 9},
		{map[string]int{"/a/*": 1, "/*/b": 2}, "/a/b", 2},
		{map[string]int{"/a/*": 2, "/*/b": 1}, "/a/b", 2},
		{map[string]int{"/a/*": 3, "": 1}, "/*/b", 3},
		{map[string]int{"/x/y/z": 3, "": 1}, "/x/*", 1},
	} {
		require.Equal(t, tt.want, pointer.Strictest(tt.declared, tt.place, 9, func(a, b int) int { return max(a, b) }), "%v %s", tt.declared, tt.place)
	}
	require.Equal(t, "/a~1b~0c", pointer.Join("", "a/b~c"))
}
