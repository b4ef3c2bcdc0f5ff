package canon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
)

// TestPlainPrefix puts each byte at each place of a text. The prefix never
// contains a byte that is not plain, and it is long.
func TestPlainPrefix(t *testing.T) {
	for length := range 26 {
		for at := range length {
			for c := range 256 {
				text := strings.Repeat("x", at) + string([]byte{byte(c)}) + strings.Repeat("y", length-at-1)
				whole := length / 8 * 8
				want := whole
				if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
					want = min(whole, at/8*8)
				}
				require.Equal(t, want, canon.PlainPrefix(text), "%q", text)
				require.Equal(t, want, canon.PlainPrefix([]byte(text)), "%q", text)
			}
		}
	}
}
