package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/journaltest"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
)

// Two nodes share one journal. It needs a server, so the example only compiles.
func ExampleOpen() {
	ctx := context.Background()
	first, err := postgres.Open(ctx, os.Getenv("REMIT_JOURNAL"), postgres.Schema("team"))
	if errors.Is(err, postgres.ErrPooler) { // connect to the server itself
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = first.Close() }()
	e := journaltest.Entry(record.Header{Txn: "t_1", Call: "c_1"}, "file_write")
	err = first.Append(ctx, journal.Batch{Entries: []record.Entry{e}, Durable: true})
	switch {
	case errors.Is(err, postgres.ErrFenced): // another node took over: open again
	case errors.Is(err, postgres.ErrOutcome), errors.Is(err, postgres.ErrLost): // open again, and read what is stored
	}

	second, err := postgres.Open(ctx, os.Getenv("REMIT_JOURNAL"), postgres.Schema("team"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = second.Close() }()
	for e, err := range second.Entries(ctx, journal.Query{}) {
		fmt.Println(e.Pos, e.Header.Kind, e.Header.Call, err)
	}
}
