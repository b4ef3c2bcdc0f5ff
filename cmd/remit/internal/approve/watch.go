package approve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// watchInterval is the interval of --watch.
const watchInterval = time.Second

// goneRecord is the JSON form of a call that is no longer pending.
type goneRecord struct {
	Call  string `json:"call"`
	State string `json:"state"` // gone
}

// goneCommit is the JSON form of a commit that waits no more.
type goneCommit struct {
	Commit string `json:"commit"`
	State  string `json:"state"` // gone
}

// watchPending reports pending calls and commits until ctx ends.
func watchPending(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, asJSON bool) error {
	a.Progress.Show("") // the progress line would mix with the calls
	calls, commits := map[string]string{}, map[string]string{}
	for first := true; ; first = false {
		all, err := callview.FindPending(ctx, j)
		var waiting []callview.PendingCommit
		if err == nil {
			waiting, err = callview.FindPendingCommits(ctx, j)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if first && len(all)+len(waiting) == 0 { // otherwise the user cannot tell whether the command works
			_, _ = fmt.Fprintln(a.Err, "remit: no call waits for approval; this command goes on watching until it is interrupted")
		}
		err = writeChanges(ctx, a, p, j, all, calls, asJSON)
		if err == nil {
			err = writeCommitChanges(ctx, a, p, waiting, commits, asJSON)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		tick, free := a.Host.WithTimeout(ctx, watchInterval, nil)
		<-tick.Done()
		free()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// writeChanges writes the calls that differ from known, and updates known.
func writeChanges(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, all []callview.Pending, known map[string]string, asJSON bool) error {
	fresh, gone := changed(all, known, func(w callview.Pending) (id, state string) {
		return w.Call.Ref.Call, w.Call.Asked.Digest + answered(w.Call.Answered)
	})
	for _, id := range gone {
		if asJSON {
			a.WriteJSON(goneRecord{id, "gone"})
		} else {
			_, _ = fmt.Fprintf(a.Out, "%s %s  waits no more: %s\n", a.Style().Faint("·"), id, p.Hint("show", id))
		}
	}
	return writeAll(ctx, a, p, j, fresh, approval.ListedLines, asJSON)
}

// writeCommitChanges writes the commits that differ from known, and updates
// known.
func writeCommitChanges(ctx context.Context, a *cli.App, p *state.Workspace, all []callview.PendingCommit, known map[string]string, asJSON bool) error {
	fresh, gone := changed(all, known, func(w callview.PendingCommit) (id, state string) {
		return w.Txn.ID, w.Decision.Decided.Digest + w.Txn.CommitDigest() + answered(w.Decision.Answered)
	})
	for _, id := range gone {
		if asJSON {
			a.WriteJSON(goneCommit{id, "gone"})
		} else {
			_, _ = fmt.Fprintf(a.Out, "%s %s  its commit waits no more: %s\n", a.Style().Faint("·"), id, p.Hint("log", id))
		}
	}
	return writeCommits(ctx, a, p, fresh, approval.ListedLines, asJSON, false)
}

func answered(by *record.Answered) string {
	if by == nil {
		return ""
	}
	return fmt.Sprint(by.Approved)
}

// changed returns what differs from known, and the IDs in known that are gone.
// It updates known.
func changed[T any](all []T, known map[string]string, of func(T) (id, state string)) (fresh []T, gone []string) {
	here := map[string]bool{}
	for _, one := range all {
		id, state := of(one)
		if here[id] = true; known[id] != state {
			known[id], fresh = state, append(fresh, one)
		}
	}
	for id := range known {
		if !here[id] {
			delete(known, id)
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return fresh, gone
}
