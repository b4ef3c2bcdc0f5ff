package pastcall

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckPointer: a pointer that can name no place, or several, is refused: its sum would be 0.
func TestCheckPointer(t *testing.T) {
	for _, good := range []string{"/amount", "/a/0/b", "/a~1b", "/a*"} {
		require.NoError(t, CheckPointer(good), good)
	}
	for _, bad := range []string{"", "amount", "/a~2", "/items/*/n", "/items/-/n"} {
		require.Error(t, CheckPointer(bad), bad)
	}
}
