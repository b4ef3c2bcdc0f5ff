package journal

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// clockTolerance is how much the clocks of processes and nodes may differ. The
// list ends at the first record that is older than --since by more.
const clockTolerance = time.Hour

// logFilter selects transactions and calls of the log.
type logFilter struct {
	callview.Filter

	since   string
	pending bool
}

func (f *logFilter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "", "list only what began since `TIME`: an age such as 2h or 3d, a date such as 2026-01-31, or a date and a time such as 2026-01-31T15:04")
	flags.StringVar(&f.Tool, "tool", "", "list only calls of tools whose name contains `TEXT`")
	flags.StringVar(&f.Outcome, "outcome", "", "list only calls with the `STATUS` done, held, pending, invalid, denied, failed, verify_failed, cancelled, timeout, unknown, dropped or in_flight")
	flags.StringVar(&f.Path, "path", "", "list only calls that changed a resource whose name contains `TEXT`, or that failed, were denied or wait because of it")
	flags.BoolVar(&f.pending, "pending", false, "list only calls that wait for approval, and transactions whose commit waits")
}

func (f *logFilter) check(now time.Time) (err error) {
	outcomes := []string{
		string(tool.StatusDone), string(tool.StatusHeld), string(tool.StatusPending), string(tool.StatusInvalid), string(tool.StatusDenied), string(tool.StatusFailed),
		string(tool.StatusVerifyFailed), string(tool.StatusCancelled), string(tool.StatusTimeout), string(tool.StatusUnknown), string(revert.PhaseDropped), "in_flight",
	}
	if f.Outcome != "" && !slices.Contains(outcomes, f.Outcome) {
		return cli.UsageProblem(fmt.Sprintf("--outcome %q: must be one of %s", f.Outcome, strings.Join(outcomes, ", ")))
	}
	if f.since != "" {
		if f.From, err = cli.ParseSince(f.since, now); err != nil {
			return cli.UsageProblem(fmt.Sprintf("--since %q: %v", f.since, err))
		}
	}
	return nil
}

// narrows reports whether the filter can leave out calls of a transaction.
func (f *logFilter) narrows() bool { return f.pending || f.Narrows() }

// nothing says that nothing is listed.
func (f *logFilter) nothing() string {
	switch {
	case f.pending && !f.Narrows() && f.since == "":
		return "no call waits for approval"
	case f.narrows() || f.since != "":
		return "nothing of this workspace is like that"
	default:
		return "nothing is recorded for this workspace yet"
	}
}

// transactions yields an entry of each transaction that the filter can select,
// newest first, each once.
func (f *logFilter) transactions(ctx context.Context, j journal.Journal) iter.Seq2[record.Entry, error] {
	entries := j.Entries(ctx, f.Query())
	if f.pending || f.Outcome == string(tool.StatusPending) {
		entries = unfinished(ctx, j)
	}
	return func(yield func(record.Entry, error) bool) {
		seen := map[string]bool{}
		for e, err := range entries {
			switch {
			case err == nil && seen[e.Header.Txn]:
				continue
			case err == nil && e.Header.At.Before(f.From.Add(-clockTolerance)):
				return
			case err == nil:
				seen[e.Header.Txn] = true
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// unfinished yields the beginning of each transaction that has not ended, newest
// first.
func unfinished(ctx context.Context, j journal.Journal) iter.Seq2[record.Entry, error] {
	return func(yield func(record.Entry, error) bool) {
		open, err := j.Unfinished(ctx)
		if err != nil {
			yield(record.Entry{}, err)
			return
		}
		for _, o := range slices.Backward(open) {
			for e, err := range j.Entries(ctx, journal.Query{Txn: o.Txn, Kinds: []record.Kind{record.KindBegun}, Limit: 1}) {
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// keep removes the calls that the filter does not select from a transaction. It
// reports whether the transaction is listed.
func (f *logFilter) keep(t *revert.Txn, rec *txnRecord) bool {
	if !f.SelectsTxn(t) {
		return false
	}
	if !f.narrows() {
		return true
	}
	kept := rec.Calls[:0]
	for i, c := range t.Calls {
		if f.Selects(c) && (!f.pending || c.Waits()) {
			kept = append(kept, rec.Calls[i])
		}
	}
	rec.Calls = kept
	return len(kept) > 0 || f.pending && !f.Narrows() && t.WaitingCommit().IsPresent()
}
