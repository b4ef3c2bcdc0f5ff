package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShop(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	require.NoError(t, run(context.Background(), &out, dir))
	require.Contains(t, out.String(), `read_note: "Order tea when it is low.\n"`)
	require.Contains(t, out.String(), "an order of ten pieces or more is for the owner")
	require.Contains(t, out.String(), "the supplier sends 9 of tea")
	require.True(t, strings.HasSuffix(out.String(), "\nI ordered nine packets of tea. I may not order more.\n"), out.String())
	note, err := os.ReadFile(filepath.Join(dir, "note.txt"))
	require.NoError(t, err)
	require.Equal(t, "Tea is ordered.\n", string(note))
}

// TestOnePage checks that the program stays as short as its page says: five
// tools, the loop and the client of a model in about a hundred lines of code.
func TestOnePage(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	code := 0
	for line := range strings.Lines(string(program)) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "//") {
			code++
		}
	}
	require.Less(t, code, 120)
}
