package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

const lastTxns = 15

type nowPage struct {
	Waiting, Running []openCall
	Commits          []openCommit // that wait
	Answered         []openCall   // not resumed yet
	AnsweredCommits  []openCommit
	Open             []openSession
	Last             []group
	Damage           string
}

// Answers returns how many answers of a person are missing.
func (d nowPage) Answers() int { return len(d.Waiting) + len(d.Commits) }

// openCall is a call that waits or runs, with its session.
type openCall struct {
	callview.Line
	Txn, Session, Who string
	Answered          string
}

// openCommit is a transaction whose commit waits for an answer.
type openCommit struct {
	Txn, Who, Answered string
	Began              time.Time
}

// openSession is a session with an open transaction.
type openSession struct {
	ID, Who string
	Prompt  string
	Calls   []callLine
	Txn     string
}

// shownOpen limits the calls that a session shows among the others.
const shownOpen = 5

func (c *Console) now(r *http.Request) (string, page, error) {
	ctx := r.Context()
	head, err := c.newest(ctx)
	if err != nil {
		return "", page{}, err
	}
	d := nowPage{}
	if err := c.open(ctx, &d); err != nil {
		return "", page{}, err
	}
	var txns []*revert.Txn
	var boxes []txnBox
	for e, err := range c.Runtime.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, Newest: true, Limit: lastTxns}) {
		var t *revert.Txn
		if err == nil {
			t, err = c.Runtime.Load(ctx, e.Header.Txn)
		}
		if err != nil && !errors.Is(err, record.ErrDamaged) {
			return "", page{}, err
		}
		if err != nil {
			d.Damage = err.Error()
			continue
		}
		txns, boxes = append(txns, t), append(boxes, c.boxOf(ctx, t))
	}
	d.Last = grouped(txns, boxes)
	return "now", page{Title: "Now", Place: "now", Live: "/", Head: head, Data: d}, nil
}

// open finds the calls that wait or run, and their sessions.
func (c *Console) open(ctx context.Context, d *nowPage) error {
	j := c.Runtime.Journal()
	waiting, damage := callview.FindPending(ctx, j)
	if damage != nil {
		d.Damage = damage.Error()
	}
	for _, w := range waiting {
		o := openCall{c.lineOf(w.Call), w.Txn.ID, w.Txn.Session, c.principal(ctx, w.Txn.Session), ""}
		if a := w.Call.Answered; a != nil && a.Digest == w.Call.Asked.Digest {
			o.Answered = answerWord(a.Approved) + " by " + a.By
			d.Answered = append(d.Answered, o)
			continue
		}
		d.Waiting = append(d.Waiting, o)
	}
	if err := c.commits(ctx, d); err != nil {
		return err
	}
	open, err := j.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, own := range open {
		t, err := c.Runtime.Load(ctx, own.Txn)
		if err != nil {
			continue // FindPending has told of it
		}
		alive, err := j.Alive(ctx, own.Owner)
		if err == nil && !alive {
			continue
		}
		who := c.principal(ctx, t.Session)
		s := openSession{ID: t.Session, Who: who, Txn: t.ID}
		if t.Prompt != nil {
			s.Prompt = t.Prompt.Text
		}
		for _, call := range t.Calls[max(0, len(t.Calls)-shownOpen):] {
			s.Calls = append(s.Calls, c.lineOf(call))
		}
		d.Open = append(d.Open, s)
		for _, call := range t.InFlight() {
			if !call.Waits() {
				d.Running = append(d.Running, openCall{c.lineOf(call), t.ID, t.Session, who, ""})
			}
		}
	}
	return nil
}

// commits finds the commits that wait.
func (c *Console) commits(ctx context.Context, d *nowPage) error {
	all, err := callview.FindPendingCommits(ctx, c.Runtime.Journal())
	for _, w := range all {
		one := openCommit{Txn: w.Txn.ID, Who: c.principal(ctx, w.Txn.Session), Began: w.Decision.At}
		if a := w.Decision.Answered; a != nil {
			one.Answered = answerWord(a.Approved) + " by " + a.By
			d.AnsweredCommits = append(d.AnsweredCommits, one)
			continue
		}
		d.Commits = append(d.Commits, one)
	}
	if d.Damage != "" {
		return nil // FindPending has told of what is unreadable
	}
	return err
}

func answerWord(approved bool) string {
	if approved {
		return "approved"
	}
	return "denied"
}

const sessionsOnPage = 50

type sessionsPage struct {
	Sessions []sessionLine
	Next     int64
}

type sessionLine struct {
	ID, Who string
	Began   string
	Client  string
}

// sessions lists the sessions, newest first.
func (c *Console) sessions(r *http.Request) (string, page, error) {
	d := sessionsPage{}
	q := journal.Query{Kinds: []record.Kind{record.KindSession}, Newest: true, Limit: sessionsOnPage + 1, Before: number(r, "before")}
	last := int64(0)
	for e, err := range c.Runtime.Journal().Entries(r.Context(), q) {
		if err != nil {
			return "", page{}, err
		}
		if len(d.Sessions) == sessionsOnPage {
			d.Next = last
			break
		}
		last = e.Pos
		d.Sessions = append(d.Sessions, sessionLine{ID: e.Header.Session, Who: c.principal(r.Context(), e.Header.Session), Began: when(e.Header.At)})
	}
	return "sessions", page{Title: "Sessions", Place: "sessions", Data: d}, nil
}
