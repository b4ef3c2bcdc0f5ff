// A journal of one's own: one that keeps each tree head in another place, so that
// nobody who can write to the journal can cut its end off unseen.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// headCheckedJournal is a journal, and somebody elsewhere who remembers its head.
type headCheckedJournal struct {
	journal.Journal
	remember func(journal.Head) error
}

// Append stores as the journal below does. A head is only worth remembering
// once nothing before it can be lost, which is after a durable batch.
func (w headCheckedJournal) Append(ctx context.Context, b journal.Batch) error {
	if err := w.Journal.Append(ctx, b); err != nil || !b.Durable {
		return err
	}
	head, err := w.Head(ctx)
	if err == nil {
		err = w.remember(head)
	}
	if err != nil {
		// The batch is stored, and a caller that is told otherwise would do it again.
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
