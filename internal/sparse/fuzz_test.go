package sparse_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/sparse"
)

// FuzzWriter checks that the file reads as written, for any pieces and any
// skips, and that exactly the whole blocks of zeros are skipped.
func FuzzWriter(f *testing.F) {
	f.Add([]byte{3, 0, 9}, uint16(100))
	f.Add([]byte{0, 0, 0}, uint16(4096))
	f.Add([]byte{1, 0, 1, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, shape []byte, piece uint16) {
		if len(shape) > 24 {
			t.Skip()
		}
		var data []byte // each byte makes a run, as long as its low bits say
		for _, b := range shape {
			data = append(data, bytes.Repeat([]byte{b >> 6}, int(b&63)*151+1)...)
		}
		to := &holed{}
		w := sparse.NewWriter(to)
		for rest := data; len(rest) > 0; {
			n := min(int(piece)+1, len(rest))
			wrote, err := w.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, wrote)
			rest = rest[n:]
		}
		require.NoError(t, w.End())
		require.True(t, bytes.Equal(data, to.Bytes()))
		blocks := 0
		for at := 0; at+4096 <= len(data); at += 4096 {
			if bytes.Count(data[at:at+4096], []byte{0}) == 4096 {
				blocks++
			}
		}
		require.Equal(t, int64(blocks)*4096, to.skipped)
	})
}
