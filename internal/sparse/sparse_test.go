package sparse_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/sparse"
)

// holed is a target in memory.
type holed struct {
	bytes.Buffer
	skipped int64
	fails   error
}

func (h *holed) Write(p []byte) (int, error) {
	if h.fails != nil {
		return 0, h.fails
	}
	return h.Buffer.Write(p)
}

func (h *holed) Skip(n int64) error {
	if h.fails != nil {
		return h.fails
	}
	h.skipped += n
	_, err := h.Buffer.Write(make([]byte, n))
	return err
}

// zeroBlocks counts the bytes of whole blocks of zeros.
func zeroBlocks(content []byte) (n int64) {
	for at := 0; at+4096 <= len(content); at += 4096 {
		if bytes.Equal(content[at:at+4096], make([]byte, 4096)) {
			n += 4096
		}
	}
	return n
}

// TestSame: whatever the pieces that content is written in, it comes out the same.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var content []byte
		for range rapid.IntRange(0, 12).Draw(t, "runs") {
			n := rapid.SampledFrom([]int{1, 100, 4095, 4096, 4097, 8192, 20_000}).Draw(t, "length")
			content = append(content, bytes.Repeat([]byte{byte(rapid.IntRange(0, 1).Draw(t, "byte"))}, n)...)
		}
		var out holed
		w := sparse.NewWriter(&out)
		whole := rapid.Bool().Draw(t, "aligned")
		for rest := content; len(rest) > 0; {
			n := min(len(rest), rapid.SampledFrom([]int{1, 4096, 5000, 131_072}).Draw(t, "piece"))
			if whole {
				n = min(len(rest), 131_072)
			}
			wrote, err := w.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, wrote)
			rest = rest[n:]
		}
		require.NoError(t, w.End())
		require.True(t, bytes.Equal(content, out.Bytes()))
		require.LessOrEqual(t, zeroBlocks(content), out.skipped, "in whatever pieces")
	})
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	require.NoError(t, err)
	content := append(make([]byte, 1<<20), "end"...)
	content = append(content, make([]byte, 1<<20)...)
	w := sparse.NewWriter(sparse.File{File: f})
	_, err = io.Copy(w, bytes.NewReader(content))
	require.NoError(t, err)
	require.NoError(t, w.End())
	require.NoError(t, f.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, got))
	require.Error(t, sparse.File{File: f}.Skip(1))
}

func TestErrors(t *testing.T) {
	out := holed{fails: errors.New("full")}
	w := sparse.NewWriter(&out)
	_, err := w.Write([]byte("x"))
	require.ErrorIs(t, err, out.fails)
	w = sparse.NewWriter(&out)
	n, err := w.Write(append(make([]byte, 4096), 'x'))
	require.ErrorIs(t, err, out.fails)
	require.Equal(t, 4096, n)
}
