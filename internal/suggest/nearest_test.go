package suggest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/suggest"
)

func ExampleName() {
	fmt.Println(suggest.Name("file_wirte", []string{"file_read", "file_write"}))
	// Output: file_write
}

func TestName(t *testing.T) {
	known := []string{"allow", "deny", "hold"}
	require.Equal(t, "allow", suggest.Name("alow", known))
	require.Equal(t, "allow", suggest.Name("ALLOW", known))
	require.Equal(t, "deny", suggest.Name("dnay", known))
	require.Empty(t, suggest.Name("permit", known))
	require.Empty(t, suggest.Name("", nil))
	require.Empty(t, suggest.Name(strings.Repeat("a", 1000), []string{strings.Repeat("a", 1000)}), "nobody means that")
}
