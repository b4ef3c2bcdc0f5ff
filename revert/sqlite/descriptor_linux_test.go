package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// withDescriptors runs do while the process can open only more further
// descriptors.
func withDescriptors(more int, do func() error) error {
	next, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	free := uint64(next.Fd())
	var was unix.Rlimit
	err = errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &was), next.Close())
	if err != nil {
		return err
	}
	few := was
	few.Cur = free + uint64(more)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		return err
	}
	said := do()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		return err
	}
	return said
}

// runOut makes each operation on a journal fail for lack of descriptors, at the
// first file that it opens, at the second, and so on.
func runOut(dir string) error {
	for _, of := range queries() {
		for more := 0; ; more++ {
			j, err := sqlite.Open(context.Background(), dir)
			if err != nil {
				return fmt.Errorf("%s: %w", of.name, err)
			}
			scarce := withDescriptors(more, func() error { return of.do(dir, j) })
			if scarce != nil && errors.Is(scarce, record.ErrDamaged) {
				return fmt.Errorf("%s with %d: called damaged: %w", of.name, more, scarce)
			}
			if scarce != nil && errors.Is(j.Append(context.Background(), journal.Batch{Durable: true}), journal.ErrPoisoned) {
				// The stored entries are unknown, so read them again.
				err = j.Close()
				if err == nil {
					j, err = sqlite.Open(context.Background(), dir)
				}
			}
			if err == nil {
				err = of.do(dir, j)
			}
			if err = errors.Join(err, j.Close()); err != nil {
				return fmt.Errorf("%s after it had %d: %w (first: %w)", of.name, more, err, scarce)
			}
			if scarce == nil {
				break
			}
		}
	}
	return nil
}

type query struct {
	name string
	do   func(dir string, j *sqlite.Journal) error
}

func queries() []query {
	ctx := context.Background()
	content := bytes.Repeat([]byte("x"), journal.InlineMax+1)
	return []query{
		{"open", func(dir string, _ *sqlite.Journal) error {
			j, err := sqlite.Open(ctx, dir)
			if err != nil {
				return err
			}
			return j.Close()
		}},
		{"append", func(_ string, j *sqlite.Journal) error {
			e := journaltest.Entry(record.Header{}, "tool")
			return j.Append(ctx, journal.Batch{Entries: []record.Entry{e}, Durable: true})
		}},
		{"keep", func(_ string, j *sqlite.Journal) error {
			_, err := j.StoreContent(ctx, bytes.NewReader(content))
			return err
		}},
		{"read", func(_ string, j *sqlite.Journal) error {
			for _, err := range j.Entries(ctx, journal.Query{}) {
				if err != nil {
					return err
				}
			}
			r, err := j.OpenContent(ctx, effect.BlobRef{Digest: string(canon.SumBytes(content)), Size: int64(len(content))})
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				err = errors.Join(err, r.Close())
			}
			return err
		}},
		{"ask for another", func(dir string, j *sqlite.Journal) error {
			locks, err := filepath.Glob(filepath.Join(dir, "owners", "o_*.lock"))
			for _, path := range locks {
				_, alive := j.Alive(ctx, filepath.Base(path[:len(path)-len(".lock")]))
				err = errors.Join(err, alive)
			}
			return err
		}},
		{"collect", func(_ string, j *sqlite.Journal) error {
			if _, err := j.CollectGarbage(ctx, nil); err != nil {
				return err
			}
			_, err := j.StoreContent(ctx, bytes.NewReader(content)) // unnamed
			return err
		}},
		{"fsck", func(dir string, _ *sqlite.Journal) error {
			_, err := sqlite.Fsck(ctx, dir, revert.FsckOptions{})
			return err
		}},
	}
}

// TestRunningOutOfDescriptors checks that a lack of descriptors is an error, is
// not damage, and passes. No test of this package runs in parallel with
// another.
func TestRunningOutOfDescriptors(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	defer func() { require.NoError(t, j.Close()) }()
	fill(t, j)
	require.NoError(t, runOut(dir))
	_, err := sqlite.Fsck(t.Context(), dir, revert.FsckOptions{})
	require.NoError(t, err)
}
