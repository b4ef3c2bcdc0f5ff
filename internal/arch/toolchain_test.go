package arch_test

import (
	"go/version"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestToolchain: before 1.26.5 a symbolic link whose name ends in a slash led os.Root
// out of its folder (CVE-2026-39822), so no older Go builds this.
func TestToolchain(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\ngo ")
	require.True(t, found)
	needs, _, _ := strings.Cut(rest, "\n")
	require.True(t, version.IsValid("go"+needs), needs)
	require.GreaterOrEqual(t, version.Compare("go"+needs, "go1.26.5"), 0, needs)
}
