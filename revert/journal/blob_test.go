package journal_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func refOf(content string) effect.BlobRef {
	return effect.BlobRef{Digest: string(canon.SumBytes([]byte(content))), Size: int64(len(content))}
}

func TestBlobRefsAreChecked(t *testing.T) {
	good := refOf("abc")
	require.NoError(t, good.Check())
	for _, tt := range []struct {
		ref   effect.BlobRef
		words string
	}{
		{effect.BlobRef{}, `"" is not the digest of a blob`},
		{effect.BlobRef{Digest: "../../etc/passwd", Size: 3}, "is not the digest of a blob"},
		{effect.BlobRef{Digest: good.Digest + "/x", Size: 3}, "is not the digest of a blob"},
		{effect.BlobRef{Digest: good.Digest, Size: -1}, "has the size -1"},
	} {
		require.ErrorContains(t, tt.ref.Check(), tt.words)
	}
}

// TestUnreadableContentIsNotStored checks that no failed read returns a blob.
func TestUnreadableContentIsNotStored(t *testing.T) {
	broken := errors.New("broken pipe")
	breaks := func(after int) io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("x", after)), iotest.ErrReader(broken))
	}
	spills := func() (io.Writer, error) { return &bytes.Buffer{}, nil }
	full := func() (io.Writer, error) { return nil, broken }
	for name, tt := range map[string]struct {
		from  io.Reader
		spill func() (io.Writer, error)
	}{
		"at once":         {breaks(0), spills},
		"while small":     {breaks(journal.InlineMax), spills},
		"while it spills": {breaks(3 * journal.InlineMax), spills},
		"no room":         {strings.NewReader(strings.Repeat("x", 2*journal.InlineMax)), full},
	} {
		blob, err := journal.ReadContent(t.Context(), tt.from, tt.spill)
		require.ErrorIs(t, err, broken, name)
		require.Equal(t, journal.Blob{}, blob, name)
	}
}

// TestContentIsCheckedToItsEnd checks that no reader reaches the end of content
// that differs from the stored content.
func TestContentIsCheckedToItsEnd(t *testing.T) {
	broken := errors.New("the disk does not answer")
	ref := refOf("content")
	breaks := func(after string) func() io.Reader {
		return func() io.Reader { return io.MultiReader(strings.NewReader(after), iotest.ErrReader(broken)) }
	}
	is := func(content string) func() io.Reader {
		return func() io.Reader { return strings.NewReader(content) }
	}
	for _, tt := range []struct {
		name  string
		from  func() io.Reader
		is    error
		words string
	}{
		{"shorter", is("conten"), record.ErrDamaged, "ends 1 bytes early"},
		{"longer", is("content!"), record.ErrDamaged, "is longer than 7 bytes"},
		{"other", is("cxntent"), record.ErrDamaged, "has other content"},
		{"broken", breaks("cont"), broken, ref.Digest},
		{"broken at its end", breaks("content"), broken, ref.Digest},
	} {
		for _, by := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.OneByteReader, iotest.DataErrReader} {
			r := journal.CheckedContent(ref, io.NopCloser(by(tt.from())))
			_, err := io.ReadAll(r)
			require.ErrorIs(t, err, tt.is, tt.name)
			require.ErrorContains(t, err, tt.words)
			_, err = r.Read(make([]byte, 1))
			require.ErrorIs(t, err, tt.is, "%s: it stays so", tt.name)
		}
	}
	r := journal.CheckedContent(ref, io.NopCloser(strings.NewReader("content")))
	n, err := r.Read(nil)
	require.NoError(t, err, "nothing was asked for")
	require.Zero(t, n)
	require.NoError(t, iotest.TestReader(r, []byte("content")))
}
