// A journal of one's own: one that keeps each tree head in another place, so that
// nobody who can write to the journal can cut its end off unseen.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/remit-dev/remit/revert"
)

// witnessed is a journal, and somebody elsewhere who remembers its head.
type witnessed struct {
	revert.Journal
	remember func(revert.Head) error
}

// Append stores as the journal below does. A head is only worth remembering
// once nothing before it can be lost, which is after a durable batch.
func (w witnessed) Append(ctx context.Context, b revert.Batch) error {
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
	var kept revert.Head
	journal := witnessed{revert.Memory(), func(h revert.Head) error { kept = h; return nil }}
	if err := journal.Append(ctx, revert.Batch{Durable: true}); err != nil {
		log.Fatal(err)
	}
	report, err := revert.Fsck(ctx, journal, revert.FsckOptions{Kept: kept})
	fmt.Println(report.Head, err)
}
