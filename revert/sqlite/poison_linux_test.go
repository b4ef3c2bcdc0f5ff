package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
)

// childFillsUp appends until the system refuses to extend a file, which is an
// I/O error like any other, and checks that every later operation fails.
func childFillsUp() error {
	signal.Ignore(syscall.SIGXFSZ)
	j, err := sqlite.Open(context.Background(), os.Getenv(dirEnv))
	if err != nil {
		return err
	}
	fmt.Println("owner", j.Owner())
	limit := unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	const txn = "full"
	own := journal.Ownership{Txn: txn, Owner: j.Owner()}
	take := journal.OwnerChange{To: own}
	for n := 0; err == nil; n++ {
		err = j.Append(context.Background(), journal.Batch{Entries: childBatch(txn, n), Fence: own, Take: take, Durable: true})
		take = journal.OwnerChange{}
		if err == nil {
			fmt.Println("stored", txn, n)
		}
	}
	for range 3 { // also after the apparent end of the cause
		if !errors.Is(err, journal.ErrPoisoned) {
			return fmt.Errorf("not poisoned: %w", err)
		}
		err = j.Append(context.Background(), journal.Batch{Durable: true})
	}
	if _, err = j.StoreContent(context.Background(), strings.NewReader("x")); !errors.Is(err, journal.ErrPoisoned) {
		return fmt.Errorf("kept: %w", err)
	}
	return nil
}

func TestAnIOErrorPoisons(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir, "full", "append to the limit")
	require.NoError(t, c.listen())
	require.NoError(t, c.cmd.Wait())
	require.NotEmpty(t, c.stored)
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	requireAllStored(t, j, c.stored)
	adoptAll(t, j, c.owner)
}
