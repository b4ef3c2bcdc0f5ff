package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPrintable: texts of tools and files cannot control a terminal.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ünïcödé ✓":       "plain, ünïcödé ✓",
		"a\nb\r\nc":              "a b c",
		"\x1b[2Jgone":            `\x1b[2Jgone`,
		"right\u202eto left":     `right\u202eto left`,
		"bell\a tab\t \x00 \xff": `bell\a tab\t \x00 ` + "\ufffd",
	} {
		require.Equal(t, want, Printable(in))
	}
}

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a/b-c.txt": "a/b-c.txt", "my files": "'my files'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'"} {
		require.Equal(t, want, Quote(in))
	}
}

func TestCount(t *testing.T) {
	require.Equal(t, []string{"1 process", "2 processes", "0 calls"}, []string{Count(1, "process"), Count(2, "process"), Count(0, "call")})
}
