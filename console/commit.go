package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// commitPage is the approval request of a commit.
type commitPage struct {
	Txn, Session, Who string
	TxnState          string
	State             string // waits, answered, changed, expired, ended
	Answer            string // who answered, and how
	Decision          *callview.Decision
	Totals            *perm.EffectTotals
	Lasting           []effectLine // what a revert cannot take back or does not know
	EffectsCut        bool
	Held              []heldCall
	Cut               bool // an argument is longer than the page shows
	Diff              diffPage
	Digest            string
	Refused           string // why the person must not approve here
	Alive             bool
	Expires           string
	Beside            []group
	Command, Resume   string
}

// LeftOut returns how many files of the difference are not on the page.
func (d commitPage) LeftOut() int { return d.Diff.Total - d.Diff.Shown }

type effectLine struct {
	Kind, Resource, Tool, Class string
	Unknown                     bool
}

// heldCall is a call that the commit runs.
type heldCall struct{ ID, Tool, Input string }

// commit shows the newest decision about the commit of a transaction, also after
// its answer.
func (c *Console) commit(r *http.Request) (string, page, error) {
	ctx, id := r.Context(), idOf(r.URL.Query())
	t, err := c.Runtime.Load(ctx, id)
	if err != nil {
		return "", page{}, err
	}
	if len(t.Commits) == 0 || t.Commits[len(t.Commits)-1].Decided == nil {
		return "", page{}, &problem{http.StatusNotFound, "The commit of this transaction asked for no approval", id}
	}
	last := t.Commits[len(t.Commits)-1]
	d := commitPage{Txn: t.ID, Session: t.Session, Who: c.principal(ctx, t.Session), TxnState: string(t.State()), Digest: last.Decided.Digest, Expires: when(last.Decided.Expires)}
	alive, err := c.Runtime.Journal().Alive(ctx, t.Owner)
	d.Alive = err != nil || alive
	c.commitState(&d, t, last)
	if err := errors.Join(c.consequences(&d, t, last), c.committed(r, &d)); err != nil {
		return "", page{}, err
	}
	if d.State == "waits" {
		d.Refused = c.refused(ctx, id, last.Decided.Processes)
	}
	if c.Hint != nil {
		d.Command, d.Resume = c.Hint("pending", id), c.Hint("resume", id, "--at-end", "commit")
	}
	if d.Beside, err = c.beside(ctx, t.Session); err != nil {
		return "", page{}, err
	}
	return "commit", page{Title: "Approve the commit of " + t.ID, Place: "now", Data: d}, nil
}

// commitState says how the request stands, as remit pending does.
func (c *Console) commitState(d *commitPage, t *revert.Txn, last revert.CommitDecision) {
	answer := last.Answered
	if answer == nil {
		answer = last.Decided.Answer
	}
	if answer != nil {
		d.Answer = answerWord(answer.Approved) + " by " + answer.By
		if answer.Why != "" {
			d.Answer += ": " + answer.Why
		}
	}
	switch {
	case t.WaitingCommit().IsAbsent():
		d.State = "ended"
	case answer != nil && !answer.Approved:
		d.State = "answered"
	case t.CommitDigest() != last.Decided.Digest:
		d.State = "changed"
	case answer != nil:
		d.State = "answered"
	case c.Now().After(last.Decided.Expires):
		d.State = "expired"
	default:
		d.State = "waits"
	}
}

// consequences adds why the policy asks, what the commit makes permanent, and the
// calls that it runs.
func (c *Console) consequences(d *commitPage, t *revert.Txn, last revert.CommitDecision) error {
	var saw perm.TxnFacts
	var decision perm.DecisionRecord
	if err := errors.Join(json.Unmarshal(last.Decided.Txn, &saw), json.Unmarshal(last.Decided.Decision, &decision)); err != nil {
		return fmt.Errorf("the decision about the commit of %s: %w", t.ID, err)
	}
	d.Decision, d.Totals, d.EffectsCut = callview.DecisionOf(&decision), saw.Totals, saw.EffectsCut
	for _, e := range saw.Effects {
		if e.Class != "reversible" || e.Kind == "connect" || e.Unknown {
			d.Lasting = append(d.Lasting, effectLine{e.Kind, e.Resource.Text, e.Tool, e.Class, e.Unknown})
		}
	}
	var texts callPage
	for _, call := range t.HeldCalls() {
		shown := callview.WithoutSensitive(call, c.sensitive(call.Tool.Name))
		d.Held = append(d.Held, heldCall{call.Ref.Call, call.Tool.Name, texts.cut(pretty(callview.AttemptOf(shown).Input))})
	}
	d.Cut = texts.Cut
	return nil
}

// committed adds the difference of the transaction. It returns a problem if the
// transaction changed meanwhile: the difference is then not that of the request.
func (c *Console) committed(r *http.Request, d *commitPage) error {
	ctx := r.Context()
	all, err := c.Runtime.Diff(ctx, d.Txn)
	if err != nil {
		return err
	}
	if d.Diff, err = c.shownDiff(r, all, d.Txn); err != nil || d.State != "waits" {
		return err
	}
	for i := range d.Diff.Files {
		f := &d.Diff.Files[i]
		f.Request = d.Digest
		for n := range f.Pictures {
			f.Pictures[n].Address += "&request=" + url.QueryEscape(d.Digest)
		}
	}
	return c.unchanged(ctx, d.Txn, d.Digest)
}

// unchanged returns a problem if the commit of a transaction is not the one that
// a request is about.
func (c *Console) unchanged(ctx context.Context, txn, request string) error {
	t, err := c.Runtime.Load(ctx, txn)
	if err == nil && t.CommitDigest() != request {
		err = &problem{http.StatusConflict, "The transaction has changed since it was asked about", "Its next commit asks again."}
	}
	return err
}

// answerCommit records the answer of a form. It names the request that the
// person saw, and the runtime compares it with what the transaction did by then.
func (c *Console) answerCommit(r *http.Request) (string, error) {
	ctx, f := context.WithoutCancel(r.Context()), r.PostForm
	reply, err := c.replyOf(f)
	if err != nil {
		return "", err
	}
	t, err := c.Runtime.Load(ctx, idOf(f))
	if err != nil {
		return "", err
	}
	reply.Txn = t.ID
	last, waits := t.WaitingCommit().Get()
	switch {
	case !waits:
		return "", &problem{http.StatusConflict, "The commit does not wait for an answer", "Nothing was answered."}
	case last.Answered != nil:
		return "", &problem{http.StatusConflict, "The commit is answered already", answerWord(last.Answered.Approved) + " by " + last.Answered.By}
	case reply.RequestDigest == "" || reply.RequestDigest != last.Decided.Digest:
		return "", &problem{http.StatusConflict, "The commit asks for something else now", "Nothing was answered. Open the transaction again to see its request."}
	}
	if reply.Approved {
		if why := c.refused(ctx, t.ID, last.Decided.Processes); why != "" {
			return "", &problem{http.StatusForbidden, "A person must approve this commit elsewhere", why}
		}
	}
	if err := c.Runtime.Answer(ctx, reply); err != nil {
		return "", err
	}
	return "/commit?id=" + url.QueryEscape(t.ID), nil
}
