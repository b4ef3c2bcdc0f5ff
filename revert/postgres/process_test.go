package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
)

// The environment of a child: this test binary as another process.
const (
	childURL    = "REMIT_POSTGRES_CHILD"
	childSchema = "REMIT_POSTGRES_SCHEMA"
	childCaller = 4
)

// numbered is entry number n of a transaction, in a call of its own.
func numbered(txn string, n int) record.Entry {
	return journaltest.Entry(record.Header{Txn: txn, Call: fmt.Sprintf("%s.%d", txn, n)}, "tool")
}

// child begins the transaction "t" and appends to it and, without a fence, to
// others, until it is killed or refused. It prints each acknowledged batch.
func child() {
	ctx := context.Background()
	j, err := postgres.Open(ctx, os.Getenv(childURL), postgres.Schema(os.Getenv(childSchema)), postgres.Lease(300*time.Millisecond))
	if err != nil {
		fmt.Println("error", err)
		return
	}
	own := journal.Ownership{Txn: "t", Owner: j.Owner()}
	if err := j.Append(ctx, journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own, Claims: []string{"r"}, Durable: true}); err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("owner", j.Owner())
	ends := make(chan error)
	for caller := range childCaller {
		go func() { ends <- appendForever(j, own, caller) }()
	}
	for range childCaller {
		err := <-ends
		fmt.Println("end", errors.Is(err, postgres.ErrFenced), errors.Is(err, journal.ErrNotOwner), err)
	}
	fmt.Println("over")
}

func appendForever(j *postgres.Journal, own journal.Ownership, caller int) error {
	txn, fence := own.Txn, own
	if caller > 0 {
		txn, fence = fmt.Sprint("u", caller), journal.Ownership{}
	}
	for n := 0; ; n += 2 {
		b := journal.Batch{Entries: []record.Entry{numbered(txn, n), numbered(txn, n+1)}, Fence: fence, Durable: n%8 < 6}
		if err := j.Append(context.Background(), b); err != nil {
			return err
		}
		fmt.Println("stored", txn, n)
	}
}

// process is a running child.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	owner string
	acked map[string]int // number of acknowledged entries, by transaction
	ends  []string
}

func startChild(t *testing.T, url, schema string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), acked: map[string]int{}}
	p.cmd.Env = append(os.Environ(), childURL+"="+url, childSchema+"="+schema)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.lines = bufio.NewScanner(out)
	return p
}

// read reads lines until one begins with a word, or n batches were stored.
func (p *process) read(t *testing.T, word string, batches int) {
	t.Helper()
	for n := 0; n < batches && p.lines.Scan(); {
		kind, rest, _ := strings.Cut(p.lines.Text(), " ")
		switch kind {
		case "error":
			t.Fatal(rest)
		case "owner":
			p.owner = rest
		case "end":
			p.ends = append(p.ends, rest)
		case "stored":
			var txn string
			var at int
			_, err := fmt.Sscan(rest, &txn, &at)
			require.NoError(t, err)
			p.acked[txn] = at + 2
			n++
		}
		if kind == word {
			return
		}
	}
}

// requireSequence checks that a transaction has entries 0 to n-1 in order, each
// once, in whole batches of two, and returns n.
func requireSequence(t *testing.T, j journal.Journal, txn string) int {
	t.Helper()
	n := 0
	for e, err := range j.Entries(t.Context(), journal.Query{Txn: txn}) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%s.%d", txn, n), e.Header.Call)
		n++
	}
	require.Zero(t, n%2)
	return n
}

func schemaName(t *testing.T) (url, schema string) {
	url, _ = storage(t)
	return url, fmt.Sprint("j", database.schemas.Load())
}

func TestKilledNodeKeepsAcknowledgedBatches(t *testing.T) {
	url, schema := schemaName(t)
	p := startChild(t, url, schema)
	p.read(t, "", 200)
	require.NoError(t, p.cmd.Process.Kill())
	p.read(t, "", 1<<30) // what it printed before
	j := until(t, url, postgres.Schema(schema))
	requireDead(t, j, p.owner)
	for txn, n := range p.acked {
		require.GreaterOrEqual(t, requireSequence(t, j, txn), n, txn)
	}
	requireTakeOver(t, j, p.owner)
}

// requireDead waits until an owner is dead.
func requireDead(t *testing.T, j journal.Journal, owner string) {
	t.Helper()
	require.NotEmpty(t, owner)
	for {
		alive, err := j.Alive(t.Context(), owner)
		require.NoError(t, err)
		if !alive {
			return
		}
	}
}

// requireTakeOver takes the transaction "t" of an owner.
func requireTakeOver(t *testing.T, j *postgres.Journal, from string) journal.Ownership {
	t.Helper()
	own := journal.Ownership{Txn: "t", Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), journal.Batch{
		Take: journal.OwnerChange{From: from, To: own}, Fence: own, Claims: []string{"r"}, Durable: true,
	}))
	return own
}

// A paused process is dead for others after its lease. When it wakes up, it
// stores nothing, neither with a fence nor without one, and learns why.
func TestPausedProcessWritesNothing(t *testing.T) {
	url, schema := schemaName(t)
	p := startChild(t, url, schema)
	p.read(t, "", 40)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	j := until(t, url, postgres.Schema(schema))
	requireDead(t, j, p.owner)
	requireTakeOver(t, j, p.owner)
	before, err := j.Head(t.Context())
	require.NoError(t, err)

	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	p.read(t, "over", 1<<30)
	require.Len(t, p.ends, childCaller)
	for _, end := range p.ends {
		require.True(t, strings.HasPrefix(end, "true true "), end)
	}
	after, err := j.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after, "it stored nothing")
	for txn, n := range p.acked {
		require.GreaterOrEqual(t, requireSequence(t, j, txn), n)
	}
}
