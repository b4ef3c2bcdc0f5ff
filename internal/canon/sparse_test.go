package canon_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/canon"
)

// plainly computes the digest of content by the description of Hash.
func plainly(content []byte) canon.Digest {
	var rest, runs []byte
	for at := 0; at < len(content); {
		n := 0
		for at+n+4096 <= len(content) && bytes.Equal(content[at+n:at+n+4096], make([]byte, 4096)) {
			n += 4096
		}
		if n > 0 {
			runs = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(runs, uint64(at)), uint64(n))
			at += n
			continue
		}
		end := min(at+4096, len(content))
		rest, at = append(rest, content[at:end]...), end
	}
	sum := sha256.Sum256(rest)
	if runs != nil {
		all := append(make([]byte, 4096), "remit/sparse-content/v1"...)
		sum = sha256.Sum256(append(append(all, runs...), sum[:]...))
	}
	return canon.Digest(fmt.Sprintf("sha256:%x", sum))
}

// TestContentWithZeros checks that content has the described digest, for any
// pieces and any zeros that are skipped.
func TestContentWithZeros(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := canon.NewHash()
		var content []byte
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			piece := make([]byte, rapid.SampledFrom([]int{0, 1, 100, 4095, 4096, 4097, 8192, 20_000}).Draw(t, "length"))
			content = append(content, piece...)
			if rapid.Bool().Draw(t, "known") {
				require.NoError(t, h.Skip(int64(len(piece))))
				continue
			}
			if rapid.Bool().Draw(t, "data") && len(piece) > 0 {
				piece[rapid.IntRange(0, len(piece)-1).Draw(t, "at")] = 1
				copy(content[len(content)-len(piece):], piece)
			}
			_, err := h.Write(piece)
			require.NoError(t, err)
		}
		want := plainly(content)
		require.Equal(t, want, h.Digest())
		require.Equal(t, want, h.Digest(), "asked again")
		require.EqualValues(t, len(content), h.Size())
		require.Equal(t, want, canon.SumBytes(content))
	})
}

// TestContentIsPlainlyHashed checks that content without a block of zeros has
// the digest that sha256sum prints.
func TestContentIsPlainlyHashed(t *testing.T) {
	for _, content := range [][]byte{nil, make([]byte, 4095), bytes.Repeat([]byte("x"), 10_000), append([]byte("x"), make([]byte, 8190)...)} {
		require.Equal(t, canon.Digest(fmt.Sprintf("sha256:%x", sha256.Sum256(content))), canon.SumBytes(content), len(content))
	}
}

// TestContentIsNotItsDescription checks that content that equals the hash input
// of other content has another digest.
func TestContentIsNotItsDescription(t *testing.T) {
	sum := sha256.Sum256(nil)
	said := append(make([]byte, 4096), "remit/sparse-content/v1\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00"...)
	require.Equal(t, canon.SumBytes(make([]byte, 4096)), canon.Digest(fmt.Sprintf("sha256:%x", sha256.Sum256(append(said, sum[:]...)))))
	require.NotEqual(t, canon.SumBytes(make([]byte, 4096)), canon.SumBytes(append(said, sum[:]...)))
}
