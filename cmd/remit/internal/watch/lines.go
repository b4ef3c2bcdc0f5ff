package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
)

// eventRecord is the JSON form of a line.
type eventRecord struct {
	Event     string         `json:"event"` // ended, waits, reverted
	Call      string         `json:"call,omitempty"`
	Txn       string         `json:"txn"`
	Session   string         `json:"session,omitempty"`
	Principal string         `json:"principal,omitempty"` // of what waits
	Tool      string         `json:"tool,omitempty"`
	Arguments string         `json:"arguments,omitempty"` // in short, without sensitive values
	Status    string         `json:"status,omitempty"`    // status of the outcome; of a program that failed, how it ended
	Class     string         `json:"effect_class,omitempty"`
	Began     time.Time      `json:"began,omitzero"`
	Ended     time.Time      `json:"ended,omitzero"`
	Changes   []changeRecord `json:"changes,omitempty"`
	State     string         `json:"state,omitempty"`   // of what waits: waits, approved, denied
	Request   string         `json:"request,omitempty"` // digest that an approval names
	Look      string         `json:"look,omitempty"`    // command that shows what waits, and how to answer it
}

type changeRecord struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
}

// errFull ends the command, because nothing reads its output.
var errFull = errors.New("the output is closed")

// writeLines writes a line for each call that ends or waits.
func (w *watcher) writeLines(ctx context.Context) error {
	told := map[string]string{}
	err := w.follow(ctx, w.newest, func(n news) error {
		w.writeNews(n, told)
		if w.app.Output.Failure != nil {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

func (w *watcher) writeNews(n news, told map[string]string) {
	if n.Damage != nil {
		_, _ = fmt.Fprintln(w.app.Err, "remit: "+cli.Printable(n.Damage.Error()))
	}
	for _, c := range n.Ended {
		if w.json {
			w.app.WriteJSON(endedRecord(c))
			continue
		}
		_, _ = fmt.Fprintln(w.app.Out, endedLine(w.app.Style(), c))
	}
	for _, txn := range n.Reverted {
		if w.json {
			w.app.WriteJSON(eventRecord{Event: "reverted", Txn: txn})
			continue
		}
		_, _ = fmt.Fprintf(w.app.Out, "%s transaction %s was reverted or redone: %s\n", w.app.Style().Doubt("·"), txn, w.Hint("log", "--txn", txn))
	}
	if n.fresh {
		w.writeWaiting(n.waiting, told)
	}
}

// writeWaiting writes what waits and was not told before, or stands otherwise
// now.
func (w *watcher) writeWaiting(all []waitLine, told map[string]string) {
	here := map[string]bool{}
	for _, l := range all {
		is := l.Digest + l.Answer
		if here[l.ID] = true; told[l.ID] == is {
			continue
		}
		told[l.ID] = is
		if w.json {
			w.app.WriteJSON(w.waitRecord(l))
			continue
		}
		p := w.app.Style()
		what := "the commit of " + l.Txn
		if l.Tool != "" {
			what = cli.Printable(l.Tool) + "  " + l.Args
		}
		_, _ = fmt.Fprintf(w.app.Out, "%s %s %s  %s  %s\n", p.Doubt("…"), l.Since.Local().Format("15:04:05"), l.ID, what, p.Doubt(w.waitWords(l)))
	}
	for id := range told {
		if !here[id] {
			delete(told, id)
		}
	}
}

func (w *watcher) waitWords(l waitLine) string {
	if l.Answer != "" {
		return l.Answer + ", not resumed yet: " + w.Hint("pending", l.ID)
	}
	return "waits: " + w.Hint("pending", l.ID)
}

func (w *watcher) waitRecord(l waitLine) eventRecord {
	r := eventRecord{
		Event: "waits", Txn: l.Txn, Principal: l.Who, Tool: l.Tool, Arguments: l.Args, Began: l.Since, State: "waits", Request: l.Digest, Look: w.Hint("pending", l.ID),
	}
	if l.Tool != "" {
		r.Call = l.ID
	}
	if l.Answer != "" {
		r.State, _, _ = strings.Cut(l.Answer, " ")
	}
	return r
}

func endedRecord(c callview.EndedCall) eventRecord {
	r := eventRecord{
		Event: "ended", Call: c.ID, Txn: c.Call.Ref.Txn, Session: c.Call.Session, Tool: c.Tool, Arguments: c.Args, Status: c.Status, Class: c.Class, Began: c.Began, Ended: c.Call.Ended,
	}
	for _, ch := range c.Call.Changes {
		r.Changes = append(r.Changes, changeRecord{ch.Resource, ch.Kind})
	}
	return r
}

// endedLine returns the line of a call that ended.
func endedLine(p cli.Style, c callview.EndedCall) string {
	words := []string{mark(p, c.Line), at(c).Local().Format("15:04:05"), c.ID, "", cli.Printable(c.Tool), "", styled(p, c.Kind, statusWords(c.Line))}
	for _, more := range []string{c.Class, c.Took, what(c.Line)} {
		if more != "" {
			words = append(words, "", more)
		}
	}
	return strings.Join(words, " ")
}

// at returns when a call ended, or when it was held.
func at(c callview.EndedCall) time.Time {
	if c.Call.Ended.IsZero() {
		return c.Began
	}
	return c.Call.Ended
}
