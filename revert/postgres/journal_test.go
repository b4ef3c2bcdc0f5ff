package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/postgres"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		child()
		return
	}
	flag.Parse()
	// Each case of a property has a schema of its own, which takes 0.15 s.
	if err := flag.Set("rapid.checks", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(pgtest.Run(m))
}

// database is one database for the tests of this package, which take a schema
// each.
var database struct {
	once    sync.Once
	url     string
	schemas atomic.Int64
}

// storage returns the URL of the database and an unused schema.
func storage(t *testing.T) (url string, schema postgres.Option) {
	t.Helper()
	database.once.Do(func() { database.url, _ = pgtest.Database(t) })
	if database.url == "" {
		t.Skip("PostgreSQL is not installed")
	}
	return database.url, postgres.Schema(fmt.Sprint("j", database.schemas.Add(1)))
}

func open(t testing.TB, url string, opts ...postgres.Option) *postgres.Journal {
	t.Helper()
	j, err := postgres.Open(context.Background(), url, opts...)
	require.NoError(t, err)
	return j
}

// until opens a journal until the test ends.
func until(t testing.TB, url string, opts ...postgres.Option) *postgres.Journal {
	t.Helper()
	j := open(t, url, opts...)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func TestJournal(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Opener {
		url, schema := storage(t)
		return func(t *testing.T) journal.Journal { return open(t, url, schema) }
	})
}
