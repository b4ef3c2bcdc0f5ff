package sqlite_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	filedisk "github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// shared is a file of a file system that can share content.
type shared struct {
	filedisk.File
	size   int64
	clone  []byte // content of the clone
	refuse error
	cloned int
}

func (s *shared) Stat() (filedisk.Info, error) { return filedisk.Info{Size: s.size}, nil }

func (s *shared) CloneTo(to *os.File) error {
	if s.refuse != nil {
		return s.refuse
	}
	s.cloned++
	_, err := to.WriteAt(s.clone, 0)
	return err
}

// TestKeepShares checks that content is cloned if possible, and that the clone
// is stored. Otherwise, and if the content fits in a row, it is copied.
func TestKeepShares(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 3*journal.InlineMax)
	for _, tt := range []struct {
		name     string
		of       shared
		cloned   int
		from     []byte
		is       []byte
		isInline bool
	}{
		{"large", shared{size: int64(len(large)), clone: large}, 1, nil, large, false},
		{"small", shared{size: 5, clone: large}, 0, []byte("small"), []byte("small"), true},
		{"cannot", shared{size: int64(len(large)), refuse: errors.New("other file system")}, 0, large, large, false},
		{"cut off meanwhile", shared{size: int64(len(large)), clone: []byte("short")}, 1, nil, []byte("short"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			j, err := sqlite.Open(t.Context(), dir)
			require.NoError(t, err)
			defer func() { require.NoError(t, j.Close()) }()
			tt.of.File = readFile{bytes.NewReader(tt.from)}
			blob, err := j.StoreContent(t.Context(), &tt.of)
			require.NoError(t, err)
			require.Equal(t, tt.cloned, tt.of.cloned)
			inline := blob.Inline().IsPresent()
			require.Equal(t, tt.isInline, inline)
			require.Equal(t, int64(len(tt.is)), blob.Ref().Size)
			if !inline {
				r, err := j.OpenContent(t.Context(), blob.Ref())
				require.NoError(t, err)
				got, err := io.ReadAll(r)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				require.True(t, bytes.Equal(tt.is, got))
			}
			left, err := filepath.Glob(filepath.Join(dir, "blobs", "new", "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// readFile is a file that can only be read.
type readFile struct{ io.Reader }

func (readFile) Write([]byte) (int, error)    { return 0, filedisk.ErrUnsupported }
func (readFile) Skip(int64) error             { return filedisk.ErrUnsupported }
func (readFile) Sync() error                  { return nil }
func (readFile) Stat() (filedisk.Info, error) { return filedisk.Info{}, nil }
func (readFile) Close() error                 { return nil }

// TestKeepSparse checks that a stored file occupies no more space than its
// data.
func TestKeepSparse(t *testing.T) {
	dir := t.TempDir()
	j, err := sqlite.Open(t.Context(), dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	content := append(make([]byte, 8<<20), "end"...)
	blob, err := j.StoreContent(t.Context(), bytes.NewReader(content))
	require.NoError(t, err)
	r, err := j.OpenContent(t.Context(), blob.Ref())
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.True(t, bytes.Equal(content, got))
	found, err := filepath.Glob(filepath.Join(dir, "blobs", "??", "*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Less(t, allocated(t, found[0]), int64(1<<20))
}
