package approve

import (
	"context"
	"fmt"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/journal"
)

// watchInterval is the interval of --watch.
const watchInterval = time.Second

// goneRecord is the JSON form of a call that is no longer pending.
type goneRecord struct {
	Call  string `json:"call"`
	State string `json:"state"` // gone
}

// watchPending reports pending calls until ctx ends.
func watchPending(ctx context.Context, a *cli.App, p *state.Workspace, j journal.Journal, asJSON bool) error {
	a.Progress.Show("") // the progress line would mix with the calls
	known := map[string]string{}
	for first := true; ; first = false {
		all, err := callview.FindPending(ctx, j)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if first && len(all) == 0 { // otherwise the user cannot tell whether the command works
			_, _ = fmt.Fprintln(a.Err, "remit: no call waits for approval; this command goes on watching until it is interrupted")
		}
		if err := writeChanges(ctx, a, p, j, all, known, asJSON); err != nil && ctx.Err() == nil {
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
	var fresh []callview.Pending
	here := map[string]bool{}
	for _, w := range all {
		id, state := w.Call.Ref.Call, w.Call.Asked.Digest
		if w.Call.Answered != nil {
			state += fmt.Sprint(w.Call.Answered.Approved)
		}
		here[id] = true
		if known[id] != state {
			known[id], fresh = state, append(fresh, w)
		}
	}
	for id := range known {
		if here[id] {
			continue
		}
		delete(known, id)
		if asJSON {
			a.WriteJSON(goneRecord{id, "gone"})
		} else {
			_, _ = fmt.Fprintf(a.Out, "%s %s  waits no more: %s\n", a.Style().Faint("·"), id, p.Hint("show", id))
		}
	}
	return writeAll(ctx, a, p, j, fresh, approval.ListedLines, asJSON)
}
