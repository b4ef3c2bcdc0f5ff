// Command journal has its own journal, which keeps each tree head in another
// place. So a writer of the journal cannot cut its end off unnoticed.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// headCheckedJournal is a journal, and a function elsewhere that stores its
// head.
type headCheckedJournal struct {
	journal.Journal
	remember func(journal.Head) error
}

// Append stores as the journal below does. A head is worth keeping only if
// nothing before it can be lost, which is true after a durable batch.
func (w headCheckedJournal) Append(ctx context.Context, b journal.Batch) error {
	if err := w.Journal.Append(ctx, b); err != nil || !b.Durable {
		return err
	}
	head, err := w.Head(ctx)
	if err == nil {
		err = w.remember(head)
	}
	if err != nil {
		// The batch is stored. If the caller got an error, it would repeat the
		// batch.
		log.Printf("the head was not remembered: %v", err)
	}
	return nil
}

func main() {
	ctx := context.Background()
	var kept journal.Head
	j := headCheckedJournal{journal.Memory(), func(h journal.Head) error { kept = h; return nil }}
	if err := j.Append(ctx, journal.Batch{Durable: true}); err != nil {
		log.Fatal(err)
	}
	report, err := revert.Fsck(ctx, j, revert.FsckOptions{Kept: kept})
	fmt.Println(report.Head, err)
}
