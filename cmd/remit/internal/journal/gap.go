package journal

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// gap is a range of lost journal entries that a person accepted. Transactions
// of that time can be unknown.
type gap struct {
	At      time.Time `json:"at"`                // when the person accepted the gap
	Entries *int64    `json:"entries,omitempty"` // number of missing entries; nil: unknown
	By      string    `json:"by"`
	pos     int64
}

// gapsAfter lists the gaps after a position, oldest first.
func gapsAfter(ctx context.Context, j journal.Journal, pos int64) (gaps []gap, err error) {
	for e, err := range j.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindAccepted}, After: pos}) {
		if err != nil {
			return nil, err
		}
		r, err := record.Unseal(e)
		if err != nil {
			return nil, err
		}
		if b, ok := r.Body.(*record.Accepted); ok {
			g := gap{At: r.At, By: b.By, pos: e.Pos}
			if b.Promised != "" {
				g.Entries = &b.Missing
			}
			gaps = append(gaps, g)
		}
	}
	return gaps, nil
}

// gaps lists the gaps that can make a target incomplete: every gap after the
// last transaction, and a gap in one that was open then. An empty ID means an
// empty journal.
func (t target) gaps(ctx context.Context, j journal.Journal, id string) ([]gap, error) {
	if id == "" {
		return gapsAfter(ctx, j, 0)
	}
	txn := id
	if e, err := firstPos(ctx, j, journal.Query{Call: id, Limit: 1}); err != nil {
		return nil, err
	} else if e.Pos > 0 {
		txn = e.Header.Txn
	}
	began, err := firstPos(ctx, j, journal.Query{Txn: txn, Limit: 1})
	if err != nil || began.Pos == 0 {
		return nil, err
	}
	gaps, err := gapsAfter(ctx, j, began.Pos)
	if err != nil || t.last || len(gaps) == 0 {
		return gaps, err
	}
	end, err := firstPos(ctx, j, journal.Query{Txn: txn, Kinds: []record.Kind{record.KindCommitted, record.KindAborted}, Limit: 1})
	if end.Pos > 0 {
		gaps = slices.DeleteFunc(gaps, func(g gap) bool { return g.pos > end.Pos })
	}
	return gaps, err
}

// firstPos returns the first entry of a query, or the zero value.
func firstPos(ctx context.Context, j journal.Journal, q journal.Query) (record.Entry, error) {
	for e, err := range j.Entries(ctx, q) {
		return e, err
	}
	return record.Entry{}, nil
}

// String describes the gap for people.
func (g gap) String() string {
	missing := "how many is not known"
	if g.Entries != nil {
		missing = cli.Entries(*g.Entries)
	}
	return fmt.Sprintf("records are missing before %s: %s, accepted by %s", g.At.Local().Format("2006-01-02 15:04:05"), missing, cli.Printable(g.By))
}

// writeGaps reports the entries that a person accepted as lost.
func writeGaps(p cli.Style, w io.Writer, gaps []gap) {
	for _, g := range gaps {
		_, _ = fmt.Fprintln(w, p.Bad(g.String()))
	}
}

// writeGapWarning reports what a revert cannot know because records are missing.
func writeGapWarning(p cli.Style, w io.Writer, gaps []gap) {
	writeGaps(p, w, gaps)
	if len(gaps) > 0 {
		_, _ = fmt.Fprintln(w, p.Bad("calls of that time can be unknown; nothing reverts what they changed"))
	}
}
