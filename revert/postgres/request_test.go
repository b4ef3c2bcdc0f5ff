package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
)

// asking is two nodes of a journal. The second one has two openings.
type asking struct {
	one, two, again *postgres.Node
	url, schema     string
}

func newAsking(t *testing.T) asking {
	t.Helper()
	url, schema := schemaName(t)
	dir := filepath.Join(t.TempDir(), "two")
	open := func(dir string) *postgres.Node { return openNode(t, url, dir, postgres.Schema(schema)) }
	return asking{open(filepath.Join(t.TempDir(), "one")), open(dir), open(dir), url, schema}
}

func (k asking) ask(t *testing.T, body string) journal.Request {
	t.Helper()
	r, err := k.one.Ask(t.Context(), journal.Request{Node: k.two.NodeID(), Txn: "t_1", Body: []byte(body)})
	require.NoError(t, err)
	require.Equal(t, journal.RequestAsked, r.State)
	return r
}

func take(t *testing.T, n *postgres.Node) journal.Request {
	t.Helper()
	r, err := n.Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, journal.RequestTaken, r.State)
	return r
}

func requireNothing(t *testing.T, n *postgres.Node) {
	t.Helper()
	can, err := n.CanTake(t.Context())
	require.NoError(t, err)
	require.False(t, can)
	_, err = n.Take(t.Context())
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func listed(t *testing.T, n *postgres.Node) (states []journal.RequestState) {
	t.Helper()
	all, err := n.Requests(t.Context())
	require.NoError(t, err)
	for _, r := range all {
		states = append(states, r.State)
	}
	return states
}

func TestRequestIsAnswered(t *testing.T) {
	k := newAsking(t)
	require.NoError(t, k.one.Append(t.Context(), journal.Batch{Entries: pair("t_1", 0), Durable: true}))
	requireNothing(t, k.two)
	asked := k.ask(t, "{}")
	require.Equal(t, k.one.NodeID(), asked.From)
	require.Equal(t, asked, k.ask(t, "{}"), "the same request")
	requireNothing(t, k.one)
	require.Equal(t, []journal.RequestState{journal.RequestAsked}, listed(t, k.one))
	can, err := k.two.CanTake(t.Context())
	require.NoError(t, err)
	require.True(t, can)

	r := take(t, k.two)
	require.Equal(t, []string{k.two.Owner()}, r.Takers)
	require.Equal(t, int64(2), r.Size)
	require.Equal(t, "t_1", r.Txn)
	requireNothing(t, k.two)
	requireNothing(t, k.again)
	require.ErrorIs(t, k.again.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestDone}), journal.ErrNotOwner)
	require.ErrorIs(t, k.one.Withdraw(t.Context(), r.ID), journal.ErrNotOwner)
	answer := journal.Request{ID: r.ID, State: journal.RequestDone, Answer: []byte("done")}
	require.ErrorContains(t, k.two.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestDone, Answer: make([]byte, journal.MaxRequestAnswer+1)}), "at most")
	require.NoError(t, k.two.Answer(t.Context(), answer))
	require.NoError(t, k.two.Answer(t.Context(), answer), "a repetition, as after a lost connection")
	requireNothing(t, k.two)
	require.Empty(t, listed(t, k.two))

	same, err := k.one.Ask(t.Context(), journal.Request{Node: k.two.NodeID(), Txn: "t_1", Body: []byte("{}")})
	require.NoError(t, err)
	require.Equal(t, "done", string(same.Answer), "an answer that was not read")
	require.Equal(t, r.ID, same.ID)
	require.NoError(t, k.one.MarkRead(t.Context(), r.ID))
	require.Empty(t, listed(t, k.one))
	old, err := k.one.Request(t.Context(), r.ID)
	require.NoError(t, err)
	require.Empty(t, old.Answer, "what was read is not kept")
	require.NotEqual(t, r.ID, k.ask(t, "{}").ID)
}

func TestRequestOfDeadTaker(t *testing.T) {
	k := newAsking(t)
	k.ask(t, "{}")
	first := take(t, k.two)
	require.NoError(t, k.one.Append(t.Context(), journal.Batch{Entries: pair("t_2", 0)}))
	require.NoError(t, k.two.Close())
	second := take(t, k.again)
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, []string{k.two.Owner(), k.again.Owner()}, second.Takers)
	require.Equal(t, first.Size, second.Size, "that of the first attempt")
	require.ErrorIs(t, k.one.Withdraw(t.Context(), first.ID), journal.ErrNotOwner)
}

// TestTakerWithoutItsLock: an opening whose session ended without its knowledge
// cannot answer what another one has taken.
func TestTakerWithoutItsLock(t *testing.T) {
	k := newAsking(t)
	r := k.ask(t, "{}")
	take(t, k.two)
	k.terminate(t, k.two)
	requireDead(t, k.one, k.two.Owner())
	require.ErrorIs(t, k.two.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestDone}), journal.ErrNotOwner, "also before another one takes it")
	require.Equal(t, r.ID, take(t, k.again).ID)
	require.ErrorIs(t, k.two.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestDone}), journal.ErrNotOwner)
	require.NoError(t, k.again.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestFailed}))
}

// TestTakeEndsTheDeadTaker: who takes a request of a dead opening ends that
// opening, so that it appends nothing more.
func TestTakeEndsTheDeadTaker(t *testing.T) {
	k := newAsking(t)
	slow := openNode(t, k.url, k.two.Dir(), postgres.Schema(k.schema), postgres.Lease(time.Hour)) // it does not look for its session
	r := k.ask(t, "{}")
	take(t, slow)
	k.terminate(t, slow)
	for {
		second, err := k.again.Take(t.Context())
		if errors.Is(err, journal.ErrNotFound) { // the server has not ended the session yet
			continue
		}
		require.NoError(t, err)
		require.Equal(t, r.ID, second.ID)
		break
	}
	require.ErrorIs(t, slow.Append(t.Context(), journal.Batch{Entries: pair("t_9", 0), Durable: true}), postgres.ErrFenced)
}

// terminate ends the session that holds the lock of an opening.
func (k asking) terminate(t *testing.T, n *postgres.Node) {
	t.Helper()
	pgtest.Exec(t, k.url, fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
		AND classid::bigint = (SELECT lock_class::bigint & 4294967295 FROM %[1]s.journal) AND objid = (SELECT id FROM %[1]s.owners WHERE owner = '%[2]s')`, k.schema, n.Owner()))
}

func TestRequestGivenBack(t *testing.T) {
	k := newAsking(t)
	r := k.ask(t, "{}")
	take(t, k.two)
	require.NoError(t, k.two.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestAsked}))
	require.ErrorIs(t, k.one.Withdraw(t.Context(), r.ID), journal.ErrNotOwner, "a part of it can be done")
	require.Equal(t, r.ID, take(t, k.again).ID, "the first taker still lives")
	require.NoError(t, k.again.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestAsked}))
	require.Equal(t, []string{k.two.Owner(), k.again.Owner(), k.two.Owner()}, take(t, k.two).Takers)
}

// TestRequestsTakenAtOnce: each request has one taker.
func TestRequestsTakenAtOnce(t *testing.T) {
	k := newAsking(t)
	const requests = 30
	for i := range requests {
		k.ask(t, fmt.Sprint(i))
	}
	var mu sync.Mutex // never held across a wait
	taken := map[int64]int{}
	var all sync.WaitGroup
	for _, n := range []*postgres.Node{k.two, k.two, k.again, k.again} {
		all.Go(func() {
			for {
				r, err := n.Take(t.Context())
				if errors.Is(err, journal.ErrNotFound) {
					if can, _ := n.CanTake(t.Context()); can { // another one looked at the row
						continue
					}
					return
				}
				if err == nil {
					err = n.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestDone})
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				taken[r.ID]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, taken, requests)
	for id, times := range taken {
		require.Equal(t, 1, times, id)
	}
}

func TestRequestWithdrawn(t *testing.T) {
	k := newAsking(t)
	r := k.ask(t, "{}")
	require.NoError(t, k.two.Withdraw(t.Context(), r.ID), "either node")
	require.NoError(t, k.two.Withdraw(t.Context(), r.ID))
	requireNothing(t, k.two)
	require.Empty(t, listed(t, k.one))
	now, err := k.one.Request(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, journal.RequestWithdrawn, now.State)
	require.NotEqual(t, r.ID, k.ask(t, "{}").ID)
	_, err = k.one.Request(t.Context(), 99)
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestRequestIsRefused(t *testing.T) {
	k := newAsking(t)
	_, err := k.one.Ask(t.Context(), journal.Request{Node: "n_other", Body: []byte("{}")})
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = k.one.Ask(t.Context(), journal.Request{Node: k.two.NodeID(), Body: []byte(strings.Repeat("x", journal.MaxRequestBody+1))})
	require.ErrorContains(t, err, "at most")
	require.NoError(t, k.one.Close())
	_, err = k.one.Ask(t.Context(), journal.Request{Node: k.two.NodeID(), Body: []byte("{}")})
	require.ErrorContains(t, err, "closed")
	require.Empty(t, listed(t, k.two))
}

// TestErasureRemovesRequests: a report names files.
func TestErasureRemovesRequests(t *testing.T) {
	k := newAsking(t)
	require.NoError(t, k.one.Append(t.Context(), journal.Batch{Entries: pair("t_1", 0), Durable: true}))
	r := k.ask(t, "ended")
	take(t, k.two)
	require.NoError(t, k.two.Answer(t.Context(), journal.Request{ID: r.ID, State: journal.RequestDone, Answer: []byte("a.txt")}))
	waits := k.ask(t, "waits")
	require.NoError(t, k.one.Append(t.Context(), journal.Batch{Erase: []string{"t_1.0"}, Durable: true}))
	_, err := k.one.Request(t.Context(), r.ID)
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.Equal(t, waits.ID, take(t, k.two).ID)
}

// TestRequestsOfEarlierSchema: a role that could use the journal before can use
// it after the migration.
func TestRequestsOfEarlierSchema(t *testing.T) {
	url, schema := schemaName(t)
	until(t, url, postgres.Schema(schema))
	text, err := os.ReadFile("migrations/0003_requests.sql")
	require.NoError(t, err)
	require.Contains(t, string(text), "CREATE TABLE requests")
	pgtest.Exec(t, url, fmt.Sprintf("DROP TABLE %[1]s.requests; ALTER TABLE %[1]s.nodes DROP COLUMN approval; DELETE FROM %[1]s.schema_version WHERE version >= 3; GRANT USAGE ON SCHEMA %[1]s TO agent; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO agent", schema))
	two := openNode(t, url, filepath.Join(t.TempDir(), "two"), postgres.Schema(schema))
	one := openNode(t, bytesReplace(url, "postgres@", "agent@"), filepath.Join(t.TempDir(), "one"), postgres.Schema(schema))
	r, err := one.Ask(t.Context(), journal.Request{Node: two.NodeID(), Txn: "t", Body: []byte("{}")})
	require.NoError(t, err)
	require.NoError(t, one.Withdraw(t.Context(), r.ID))
}
