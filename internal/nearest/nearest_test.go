package nearest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/nearest"
)

func ExampleName() {
	fmt.Println(nearest.Name("file_wirte", []string{"file_read", "file_write"}))
	// Output: file_write
}

func TestName(t *testing.T) {
	known := []string{"allow", "deny", "hold"}
	require.Equal(t, "allow", nearest.Name("alow", known))
	require.Equal(t, "allow", nearest.Name("ALLOW", known))
	require.Equal(t, "deny", nearest.Name("dnay", known))
	require.Empty(t, nearest.Name("permit", known))
	require.Empty(t, nearest.Name("", nil))
	require.Empty(t, nearest.Name(strings.Repeat("a", 1000), []string{strings.Repeat("a", 1000)}), "nobody means that")
}
