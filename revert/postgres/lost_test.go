package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
)

// pair is batch n of a transaction.
func pair(txn string, n int) []record.Entry {
	return []record.Entry{numbered(txn, 2*n), numbered(txn, 2*n+1)}
}

// A connection that is cut around a commit is replaced, and the append knows
// its outcome: each batch is stored once.
func TestCutConnectionDuringCommit(t *testing.T) {
	url, schema := storage(t)
	p := newProxy(t, url)
	j := until(t, p.url(t, url), schema)
	cuts := 0
	p.onAppend(func() cut {
		cuts++
		return []cut{pass, dropped, answered}[cuts%3]
	})
	const batches = 20
	for n := range batches {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", n), Durable: n%2 == 0}))
	}
	require.Greater(t, cuts, batches)
	require.Equal(t, 2*batches, requireSequence(t, until(t, url, schema), "t"))
}

// Without a server, an append fails with an outcome that reading finds out.
func TestOutcomeUnknown(t *testing.T) {
	url, schema := storage(t)
	other := until(t, url, schema)
	for name, what := range map[string]cut{"stored": answered, "not stored": dropped} {
		t.Run(name, func(t *testing.T) {
			p := newProxy(t, url)
			j := until(t, p.url(t, url), schema, postgres.ReconnectTimeout(20*time.Millisecond), postgres.Lease(300*time.Millisecond))
			txn := "of " + name
			require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair(txn, 0), Durable: true}))
			p.onAppend(func() cut {
				p.down = true
				return what
			})
			for range 2 {
				err := j.Append(t.Context(), journal.Batch{Entries: pair(txn, 1), Durable: true})
				require.ErrorIs(t, err, postgres.ErrOutcome)
				require.ErrorIs(t, err, journal.ErrPoisoned)
			}
			requireDead(t, other, j.Owner())
			require.Equal(t, map[cut]int{answered: 4, dropped: 2}[what], requireSequence(t, other, txn))
		})
	}
}

// The server ends sessions at any time. Appends from many callers are stored
// once and in order all the same, and reads do not fail.
func TestTerminatedSessions(t *testing.T) {
	url, schema := storage(t)
	j, other := until(t, url, schema), until(t, url, schema)
	const callers, batches, rounds = 6, 10, 8
	for round := range rounds {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'remit' AND datname = current_database()")
		}()
		appendAll(t, j, callers, round*batches, (round+1)*batches)
		<-ended
		for caller := range callers {
			require.Equal(t, 2*(round+1)*batches, requireSequence(t, j, fmt.Sprint("t", caller)))
		}
	}
	require.Greater(t, j.Token(), int64(rounds/2), "sessions were lost")
	for caller := range callers {
		require.Equal(t, 2*rounds*batches, requireSequence(t, other, fmt.Sprint("t", caller)))
	}
}

func appendAll(t *testing.T, j *postgres.Journal, callers, from, to int) {
	t.Helper()
	errs := make([]error, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for n := from; n < to; n++ {
				if err := j.Append(context.Background(), journal.Batch{Entries: pair(fmt.Sprint("t", caller), n), Durable: true}); err != nil {
					errs[caller] = err
					return
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// An opening whose connection was lost cannot append once another process found
// it dead. One that nobody asked about continues.
func TestStaleOwner(t *testing.T) {
	url, schema := storage(t)
	p := newProxy(t, url)
	j, other := until(t, p.url(t, url), schema), until(t, url, schema)
	own := journal.Ownership{Txn: "t", Owner: j.Owner()}
	require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own, Claims: []string{"r"}, Durable: true}))
	p.cutAll(false)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Entries: pair("t", 0), Durable: true}))
	alive, err := other.Alive(t.Context(), j.Owner())
	require.NoError(t, err)
	require.True(t, alive)

	p.cutAll(true)
	for looks := true; looks; { // until the server notices
		looks, err = journal.LooksAlive(t.Context(), other, j.Owner())
		require.NoError(t, err)
	}
	p.cutAll(false)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Durable: true}), "a look has no consequence")
	alive, err = journal.LooksAlive(t.Context(), other, j.Owner())
	require.NoError(t, err)
	require.True(t, alive)

	p.cutAll(true)
	requireDead(t, other, j.Owner())
	p.cutAll(false)
	for _, b := range []journal.Batch{{Fence: own, Entries: pair("t", 1)}, {Entries: pair("u", 0)}, {Durable: true}} {
		err := j.Append(t.Context(), b)
		require.ErrorIs(t, err, postgres.ErrFenced)
		require.ErrorIs(t, err, journal.ErrNotOwner)
	}
	requireTakeOver(t, other, j.Owner())
	require.Equal(t, 2, requireSequence(t, other, "t"))
	require.Zero(t, requireSequence(t, other, "u"))
	alive, err = j.Alive(t.Context(), j.Owner())
	require.NoError(t, err)
	require.False(t, alive, "it knows")
}

// The server stops at once and starts again while callers append. What was
// acknowledged as durable is there, and nothing has gaps.
func TestStoppedServer(t *testing.T) {
	s := pgtest.NewServer(t)
	j, lazy := until(t, s.URL()), until(t, s.URL())
	const callers, batches = 6, 60
	done := make(chan struct{})
	go func() {
		defer close(done)
		appendAll(t, j, callers, 0, batches)
	}()
	acked, durable := 0, 0
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; acked < 3000 && failed == nil; acked++ { // not durable until the server stops, or it lost nothing
			if failed = lazy.Append(context.Background(), journal.Batch{Entries: pair("lazy", acked), Durable: acked < 5}); acked < 5 {
				durable++
			}
		}
	}()
	for pgtest.Rows(t, s.URL(), "SELECT count(*) > 30 FROM remit.flushes") != "t\n" {
		continue
	}
	kept, err := j.Head(t.Context())
	require.NoError(t, err)
	s.Kill()
	require.NoError(t, s.Start())
	<-done
	<-ended
	after := until(t, s.URL())
	for caller := range callers {
		require.Equal(t, 2*batches, requireSequence(t, after, fmt.Sprint("t", caller)))
	}
	n := requireSequence(t, after, "lazy")
	require.GreaterOrEqual(t, n, 2*durable)
	require.NoError(t, failed, "what the server lost was sent again")
	require.Equal(t, 2*acked, n)
	now, err := after.Head(t.Context())
	require.NoError(t, err)
	proof, err := journal.Proof(t.Context(), after, kept, now)
	require.NoError(t, err)
	require.NoError(t, journal.CheckPrefix(kept, now, proof), "a head that was seen holds")
}

// What a server loses that it had not synced, an opening sends again in its
// order. Here rows are deleted; in TestStoppedServer the server really stops.
func TestUnsyncedIsSentAgain(t *testing.T) {
	for name, durable := range map[string]bool{"before a durable batch": true, "before another one": false} {
		t.Run(name, func(t *testing.T) {
			url, schema := schemaName(t)
			p := newProxy(t, url)
			j := until(t, p.url(t, url), postgres.Schema(schema))
			waits, err := pgx.Connect(t.Context(), url) // the sequencer, which would give positions
			require.NoError(t, err)
			defer func() { _ = waits.Close(context.WithoutCancel(t.Context())) }()
			_, err = waits.Exec(t.Context(), "BEGIN; SELECT FROM "+schema+".journal FOR UPDATE")
			require.NoError(t, err)
			own := journal.Ownership{Txn: "t", Owner: j.Owner()}
			require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own, Entries: pair("t", 0), Durable: true}))
			for n := 1; n < 9; n++ {
				require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Claims: []string{fmt.Sprint("r", n)}, Entries: pair("t", n)}))
			}
			p.cutAll(false)
			pgtest.Exec(t, url, "SET search_path = "+schema+`; DELETE FROM claims WHERE resource > 'r3'; DELETE FROM flushes WHERE number > 4;
				DELETE FROM entries WHERE flush NOT IN (SELECT id FROM flushes)`)
			require.NoError(t, j.Append(t.Context(), journal.Batch{Fence: own, Entries: pair("t", 9), Durable: durable}))
			_, err = waits.Exec(t.Context(), "ROLLBACK")
			require.NoError(t, err)
			other := until(t, url, postgres.Schema(schema))
			require.Equal(t, 20, requireSequence(t, other, "t"))
			u := journal.Ownership{Txn: "u", Owner: other.Owner()}
			require.ErrorIs(t, other.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: u}, Fence: u, Claims: []string{"r5"}}), journal.ErrClaimed)
		})
	}
}

// Many batches that need not be durable are synced now and then: an opening keeps
// only the newest ones to send them again.
func TestUnsyncedIsBounded(t *testing.T) {
	url, schema := schemaName(t)
	j := until(t, url, postgres.Schema(schema))
	most := 0
	for n := range 200 {
		require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", n)}))
		most = max(most, j.Unsynced())
	}
	require.Equal(t, 64, most)
}

// A server that comes back without acknowledged entries is not continued.
func TestLostEntriesStopAppends(t *testing.T) {
	url, schema := storage(t)
	p := newProxy(t, url)
	j := until(t, p.url(t, url), schema)
	require.NoError(t, j.Append(t.Context(), journal.Batch{Entries: pair("t", 0), Durable: true}))
	name := fmt.Sprint("j", database.schemas.Load())
	pgtest.Exec(t, url, fmt.Sprintf("DELETE FROM %[1]s.entries; DELETE FROM %[1]s.flushes", name))
	p.cutAll(false)
	err := j.Append(t.Context(), journal.Batch{Entries: pair("t", 1), Durable: true})
	require.ErrorIs(t, err, postgres.ErrLost)
	require.ErrorIs(t, err, journal.ErrPoisoned)
	require.Zero(t, requireSequence(t, until(t, url, schema), "t"))
}

// Each append checks the token of its opening, and that it has not ended.
func TestStaleTokenIsRefused(t *testing.T) {
	for name, change := range map[string]string{"token": "token = token + 1", "end": "ended = now()"} {
		t.Run(name, func(t *testing.T) {
			url, schema := schemaName(t)
			j := until(t, url, postgres.Schema(schema))
			own := journal.Ownership{Txn: "t", Owner: j.Owner()}
			require.NoError(t, j.Append(t.Context(), journal.Batch{Take: journal.OwnerChange{To: own}, Fence: own, Entries: pair("t", 0), Durable: true}))
			pgtest.Exec(t, url, "UPDATE "+schema+".owners SET "+change)
			for _, b := range []journal.Batch{{Fence: own, Entries: pair("t", 1)}, {Entries: pair("t", 1)}, {Durable: true}} {
				require.ErrorIs(t, j.Append(t.Context(), b), postgres.ErrFenced)
			}
			require.Equal(t, 2, requireSequence(t, j, "t"))
		})
	}
}
