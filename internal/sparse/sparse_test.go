package sparse_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

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

// TestSame checks that content is the same for any division into pieces.
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
		require.Equal(t, zeroBlocks(content), out.skipped, "in whatever pieces")
	})
}

// sparseContent is content that knows some of its zeros.
type sparseContent struct {
	*bytes.Reader
	content []byte
	knows   func() bool
}

func (s sparseContent) Hole() (int64, error) {
	at := s.Size() - int64(s.Len())
	rest := s.content[at:]
	n := int64(len(rest) - len(bytes.TrimLeft(rest, "\x00")))
	if !s.knows() {
		n = 0
	}
	_, err := s.Seek(n, io.SeekCurrent)
	return n, err
}

// TestHoles checks that the same data is written and skipped, for any zeros
// that the content knows.
func TestHoles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var content []byte
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			n := rapid.SampledFrom([]int{1, 4095, 4096, 5000, 20_000, 100_000}).Draw(t, "length")
			content = append(content, bytes.Repeat([]byte{byte(rapid.IntRange(0, 1).Draw(t, "byte"))}, n)...)
		}
		source := sparseContent{bytes.NewReader(content), content, func() bool { return rapid.Bool().Draw(t, "knows") }}
		var out, other holed
		w := sparse.NewWriter(sparse.Tee(&out, &other))
		n, err := sparse.Copy(w, source, make([]byte, rapid.SampledFrom([]int{1000, 4096, 8192, 20_000}).Draw(t, "room")))
		require.NoError(t, err)
		require.NoError(t, w.End())
		require.EqualValues(t, len(content), n)
		require.True(t, bytes.Equal(content, out.Bytes()))
		require.Equal(t, zeroBlocks(content), out.skipped)
		require.Equal(t, out, other)
	})
}

// TestHole checks that only the data of a file with holes, and a little more,
// is read.
func TestHole(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, f.Truncate(3<<30))
	_, err = f.WriteAt([]byte("middle"), 1<<30)
	require.NoError(t, err)
	if n, err := (sparse.File{File: f}).Hole(); err != nil || n != 1<<30 {
		t.Skipf("the file system tells of no holes: %d, %v", n, err)
	}
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	read := &counting{File: sparse.File{File: f}}
	var data bytes.Buffer
	to := &layout{}
	n, err := sparse.Copy(sparse.Tee(to, sparse.NewWriter(&only{&data})), read, make([]byte, 128<<10))
	require.NoError(t, err)
	require.EqualValues(t, 3<<30, n)
	require.EqualValues(t, 3<<30, to.size)
	require.Equal(t, "middle", string(bytes.Trim(data.Bytes(), "\x00")))
	require.Less(t, read.n, 2<<20)
}

type counting struct {
	sparse.File

	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.n += n
	return n, err
}

// layout only counts.
type layout struct{ size int64 }

func (l *layout) Write(p []byte) (int, error) { l.size += int64(len(p)); return len(p), nil }
func (l *layout) Skip(n int64) error          { l.size += n; return nil }

// only hides the Target methods of a writer.
type only struct{ io.Writer }

func (only) Skip(int64) error { return nil }

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
	_, err = sparse.File{File: f}.Hole()
	require.Error(t, err)
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

	_, err = sparse.Copy(&out, bytes.NewReader([]byte("x")), make([]byte, 1))
	require.ErrorIs(t, err, out.fails)
	w = sparse.NewWriter(&holed{})
	_, err = sparse.Copy(w, iotest.ErrReader(out.fails), make([]byte, 1))
	require.ErrorIs(t, err, out.fails)
	_, err = sparse.Copy(w, failingContent{out.fails}, make([]byte, 1))
	require.ErrorIs(t, err, out.fails)
	for _, failing := range []sparse.Target{sparse.Tee(&out, &holed{}), sparse.Tee(&holed{}, &out)} {
		_, err = failing.Write([]byte("x"))
		require.ErrorIs(t, err, out.fails)
		require.ErrorIs(t, failing.Skip(1), out.fails)
		w = sparse.NewWriter(failing)
		require.NoError(t, w.Skip(5000))
		require.ErrorIs(t, w.End(), out.fails)
	}
	late := &holed{}
	w = sparse.NewWriter(late)
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	late.fails = out.fails
	require.ErrorIs(t, w.Skip(1), out.fails)
}

// failingContent is content whose Hole fails.
type failingContent struct{ err error }

func (failingContent) Read(p []byte) (int, error) { return len(p), nil }
func (b failingContent) Hole() (int64, error)     { return 0, b.err }
