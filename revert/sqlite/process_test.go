package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// The test binary starts itself as another process: with these variables it
// runs the function that childEnv names on the journal in dirEnv.
const (
	childEnv = "REMIT_TEST_CHILD"
	dirEnv   = "REMIT_TEST_DIR"
	nameEnv  = "REMIT_TEST_NAME" // prefix of the IDs of the child's transactions

	childCallers = 4
	boundedCount = 40
	kills        = 20
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case "append":
		err = childAppends(1 << 30)
	case "append bounded":
		err = childAppends(boundedCount)
	case "retain":
		err = childRetains()
	case "append to the limit":
		err = childFillsUp()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childAppends appends from several goroutines at once. Every line that it
// prints is a fact: the owner's name, then each acknowledged batch.
func childAppends(batches int) error {
	j, err := sqlite.Open(context.Background(), os.Getenv(dirEnv))
	if err != nil {
		return err
	}
	fmt.Println("owner", j.Owner())
	errs := make(chan error, childCallers)
	for caller := range childCallers {
		go func() { errs <- childCaller(j, fmt.Sprintf("%s-%d", os.Getenv(nameEnv), caller), batches) }()
	}
	for range childCallers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return j.Close()
}

func childCaller(j journal.Journal, txn string, batches int) error {
	own := journal.Ownership{Txn: txn, Owner: j.Owner()}
	take := journal.OwnerChange{To: own}
	for n := range batches {
		b := journal.Batch{Entries: childBatch(txn, n), Durable: n%4 != 3, Fence: own, Take: take, Claims: []string{fmt.Sprint(txn, n)}}
		if n%5 == 4 {
			large, err := j.StoreContent(context.Background(), strings.NewReader(strings.Repeat(txn, journal.InlineMax)))
			if err != nil {
				return err
			}
			b.Blobs = []journal.Blob{large}
		}
		if err := j.Append(context.Background(), b); err != nil {
			return err
		}
		take = journal.OwnerChange{}
		if b.Durable {
			fmt.Println("stored", txn, n)
		}
	}
	return nil
}

// childBatch returns the n-th batch of a transaction: its call names it, and
// its session is its number of entries.
func childBatch(txn string, n int) []record.Entry {
	all := make([]record.Entry, n%3+1)
	for i := range all {
		all[i] = journaltest.Entry(record.Header{Session: fmt.Sprint(len(all)), Txn: txn, Call: fmt.Sprint(n)}, fmt.Sprint(i))
	}
	return all
}

// child is a running child and its output.
type child struct {
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	owner  string
	stored map[string]int // the last acknowledged batch of each transaction
}

func startChild(t *testing.T, dir, name, does string) *child {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := &child{cmd: exec.Command(self), stored: map[string]int{}}
	c.cmd.Env = append(os.Environ(), childEnv+"="+does, dirEnv+"="+dir, nameEnv+"="+name)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	c.stdout = bufio.NewScanner(out)
	require.True(t, c.stdout.Scan())
	_, err = fmt.Sscanf(c.stdout.Text(), "owner %s", &c.owner)
	require.NoError(t, err)
	return c
}

// listen reads the child's output to its end.
func (c *child) listen() error {
	for c.stdout.Scan() {
		var txn string
		var n int
		if _, err := fmt.Sscanf(c.stdout.Text(), "stored %s %d", &txn, &n); err != nil {
			return fmt.Errorf("%q: %w", c.stdout.Text(), err)
		}
		c.stored[txn] = n
	}
	return c.stdout.Err()
}

func TestKilledProcessKeepsAcknowledgedBatches(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	dir := t.TempDir()
	survivor := open(t, dir)
	defer func() { _ = survivor.Close() }()
	stored := map[string]int{}
	for round := range kills {
		c := startChild(t, dir, fmt.Sprint("k", round), "append")
		requireAlive(t, survivor, c.owner, true)
		delay := time.Duration(random.IntN(40_000)) * time.Microsecond
		time.AfterFunc(delay, func() { _ = c.cmd.Process.Kill() }) // fails only if the process is dead
		require.NoError(t, c.listen())
		require.Error(t, c.cmd.Wait())

		requireAlive(t, survivor, c.owner, false)
		for txn, n := range c.stored {
			stored[txn] = n
		}
		after := open(t, dir)
		requireAlive(t, after, c.owner, false)
		requireAlive(t, after, survivor.Owner(), true)
		requireAllStored(t, after, stored)
		adoptAll(t, after, c.owner)
		require.NoError(t, after.Close())
	}
	requireSwept(t, dir, survivor)
}

func requireAlive(t *testing.T, j journal.Journal, owner string, want bool) {
	t.Helper()
	alive, err := j.Alive(context.Background(), owner)
	require.NoError(t, err)
	require.Equal(t, want, alive)
}

// requireAllStored checks that every batch is complete, that no batch of a
// transaction is missing, and that each acknowledged batch is present.
func requireAllStored(t *testing.T, j journal.Journal, stored map[string]int) {
	t.Helper()
	next, pos := map[string]int{}, int64(0)
	var rest []record.Entry // of the current batch
	for e, err := range j.Entries(context.Background(), journal.Query{}) {
		require.NoError(t, err)
		pos++
		require.Equal(t, pos, e.Pos)
		if len(rest) == 0 {
			rest = childBatch(e.Header.Txn, next[e.Header.Txn])
			next[e.Header.Txn]++
		}
		e.Pos = 0
		require.Equal(t, rest[0], e)
		rest = rest[1:]
	}
	require.Empty(t, rest)
	for txn, n := range stored {
		require.Greater(t, next[txn], n, txn)
	}
}

// adoptAll takes over what a dead owner left, and ends it.
func adoptAll(t *testing.T, j journal.Journal, dead string) {
	t.Helper()
	open, err := j.Unfinished(context.Background())
	require.NoError(t, err)
	for _, o := range open {
		require.Equal(t, dead, o.Owner)
		mine := journal.Ownership{Txn: o.Txn, Owner: j.Owner()}
		require.NoError(t, j.Append(context.Background(), journal.Batch{Take: journal.OwnerChange{From: dead, To: mine}, Fence: mine, End: true, Durable: true}))
	}
}

// requireSwept checks that no file of a dead opening remains after the next
// Open.
func requireSwept(t *testing.T, dir string, survivor *sqlite.Journal) {
	t.Helper()
	require.NoError(t, open(t, dir).Close())
	locks, err := filepath.Glob(filepath.Join(dir, "owners", "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "owners", survivor.Owner()+".lock")}, locks)
	unfinished, err := filepath.Glob(filepath.Join(dir, "blobs", "new", "*"))
	require.NoError(t, err)
	require.Empty(t, unfinished)
}

func TestProcessesAppendSideBySide(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state") // created by the first one
	var all sync.WaitGroup
	children := make([]*child, 3)
	errs := make([]error, len(children))
	for i := range children {
		children[i] = startChild(t, dir, fmt.Sprint("p", i), "append bounded")
		all.Go(func() { errs[i] = children[i].listen() })
	}
	all.Wait()
	stored := map[string]int{}
	for i, c := range children {
		require.NoError(t, errs[i])
		require.NoError(t, c.cmd.Wait())
		for txn, n := range c.stored {
			stored[txn] = n
		}
	}
	require.Len(t, stored, len(children)*childCallers)
	j := open(t, dir)
	defer func() { _ = j.Close() }()
	requireAllStored(t, j, stored)
	left, err := j.Unfinished(t.Context())
	require.NoError(t, err)
	require.Len(t, left, len(children)*childCallers)
}

func TestLockFileStaysWhileATransactionNamesIt(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir)
	own := journal.Ownership{Txn: "t", Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Durable: true}))
	require.NoError(t, j.Close())
	lock := filepath.Join(dir, "owners", own.Owner+".lock")
	require.FileExists(t, lock)
	second := open(t, dir)
	require.FileExists(t, lock)
	adoptAll(t, second, own.Owner)
	require.NoError(t, open(t, dir).Close())
	require.NoFileExists(t, lock)
	requireAlive(t, second, own.Owner, false)
	require.NoError(t, second.Close())
	require.NoFileExists(t, filepath.Join(dir, "owners", second.Owner()+".lock"))
}

func TestOwnersOfOtherJournalsAreNoPaths(t *testing.T) {
	j := open(t, t.TempDir())
	defer func() { _ = j.Close() }()
	for _, owner := range []string{"", "o_", "memory-1", "../owners/x", "o_../x", "o_a/b"} {
		_, err := j.Alive(t.Context(), owner)
		require.ErrorContains(t, err, "not an owner", owner)
	}
}
