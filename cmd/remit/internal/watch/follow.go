package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// refreshSteps is the number of steps after which what no record tells is looked
// at: whether processes live, and whether requests expired.
const refreshSteps = 8

// news is what a step of the feed brought.
type news struct {
	callview.Step
	running []callview.RunningCall
	waiting []waitLine // with fresh
	fresh   bool
}

// waitLine is a call or a commit that waits for a person.
type waitLine struct {
	ID, Txn    string
	Tool, Args string // empty: a commit
	Who        string
	Since      time.Time
	Answer     string // how it was answered, if it is not resumed yet
	Digest     string
}

// follow calls each with what happened, the newest calls first, until the context
// ends or each returns an error.
func (w *watcher) follow(ctx context.Context, newest int, each func(news) error) error {
	j := w.rt.Journal()
	feed, err := callview.NewFeed(ctx, j, w.lineOf)
	if err != nil {
		return err
	}
	if newest > 0 {
		s, err := feed.Last(ctx, newest)
		if err != nil {
			return err
		}
		if err := each(news{Step: s}); err != nil {
			return err
		}
	}
	if err := feed.FindRunning(ctx); err != nil && ctx.Err() != nil {
		return nil
	} // the look for what waits tells of the damage
	for n := 0; ; n++ {
		if err := w.step(ctx, j, feed, n, each); err != nil {
			return stopped(ctx, err)
		}
		tick, free := w.app.Host.WithTimeout(ctx, callview.PollInterval, nil)
		<-tick.Done()
		free()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// lineOf returns what is shown of a call. It shows no arguments of an unknown
// tool, which may declare sensitive ones.
func (w *watcher) lineOf(c *revert.Call) callview.Line {
	t, known := w.rt.Tools().Get(c.Tool.Name)
	if !known {
		l := callview.LineOf(c, nil)
		l.Args = ""
		return l
	}
	return callview.LineOf(c, t.Spec().Hints.Sensitive)
}

// stopped returns no error if the context is the reason of it.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// step reads until the journal has no more.
func (w *watcher) step(ctx context.Context, j journal.Journal, feed *callview.Feed, n int, each func(news) error) error {
	for first := true; ; first = false {
		s, err := feed.Next(ctx)
		if err != nil {
			return err
		}
		out := news{Step: s}
		refresh := first && n%refreshSteps == 0
		if refresh {
			if err := feed.DropDead(ctx); err != nil {
				return err
			}
		}
		if s.Waiting || refresh {
			all := feed.Waiting(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			out.fresh, out.waiting = true, w.waitLines(ctx, j, all)
			out.Damage = errors.Join(out.Damage, all.Damage)
		}
		if out.running = feed.Running(); s.Any || refresh {
			if err := each(out); err != nil {
				return err
			}
		}
		if !s.More {
			return nil
		}
	}
}

func (w *watcher) waitLines(ctx context.Context, j journal.Journal, all callview.Waiting) (lines []waitLine) {
	who := func(session string) string {
		p, err := state.PrincipalOf(ctx, j, session)
		if err != nil {
			return ""
		}
		return p.ID
	}
	for _, c := range all.Calls {
		l := waitLine{
			ID: c.Call.Ref.Call, Txn: c.Txn.ID, Tool: c.Call.Tool.Name, Args: callview.Arguments(callview.PendingInput(c.Call, w.rt.Tools()), nil),
			Who: who(c.Txn.Session), Since: c.Call.Began, Digest: c.Call.Asked.Digest,
		}
		if a := c.Call.Answered; a != nil && a.Digest == c.Call.Asked.Digest {
			l.Answer = answerWords(a.Approved, a.By)
		}
		lines = append(lines, l)
	}
	for _, c := range all.Commits {
		l := waitLine{ID: c.Txn.ID, Txn: c.Txn.ID, Who: who(c.Txn.Session), Since: c.Decision.At, Digest: c.Decision.Decided.Digest}
		if a := c.Decision.Answered; a != nil {
			l.Answer = answerWords(a.Approved, a.By)
		}
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b waitLine) int { return cmp.Compare(min(len(a.Answer), 1), min(len(b.Answer), 1)) })
	return lines
}

func answerWords(approved bool, by string) string {
	return map[bool]string{true: "approved by ", false: "denied by "}[approved] + cli.Printable(by)
}
