package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// isTxn reports whether an ID is that of a transaction.
func isTxn(id string) bool { return strings.HasPrefix(id, "t_") }

// pendingCommitRecord is the JSON form of a commit that waits.
type pendingCommitRecord struct {
	Commit    string             `json:"commit"` // ID of the transaction
	Session   string             `json:"session"`
	Principal string             `json:"principal"`
	Totals    *perm.EffectTotals `json:"totals"`
	Effects   []perm.EffectFacts `json:"effects"` // what the policy saw
	Reasons   []callview.Reason  `json:"reasons"`
	Since     time.Time          `json:"since"`
	Expires   time.Time          `json:"expires"`
	State     string             `json:"state"`             // waits, approved, denied, expired, changed
	By        string             `json:"by,omitempty"`      // who answered
	OwnerGone bool               `json:"owner_gone"`        // the process that commits has ended
	Diff      string             `json:"diff,omitempty"`    // what the transaction did
	Note      string             `json:"note,omitempty"`    // what diff lacks, and why
	Question  string             `json:"question"`          // digest that an approval names
	Approve   string             `json:"approve,omitempty"` // command that approves the commit

	node string // the other node that ends it; empty: this one
}

// writeCommits writes commits that wait, after other output if after is set.
func writeCommits(ctx context.Context, a *cli.App, p *state.Workspace, all []callview.PendingCommit, most int, asJSON, after bool) error {
	if len(all) == 0 {
		return nil
	}
	return startup.WithRuntime(ctx, a, p, func(rt *agent.Runtime) error {
		for _, w := range all {
			r, err := commitRecordOf(ctx, a, p, rt, w, most)
			if err != nil {
				return err
			}
			if asJSON {
				a.WriteJSON(r)
				continue
			}
			if after {
				_, _ = fmt.Fprintln(a.Out)
			}
			after = true
			writeCommit(a, p, r)
		}
		return nil
	})
}

func commitRecordOf(ctx context.Context, a *cli.App, p *state.Workspace, rt *agent.Runtime, w callview.PendingCommit, most int) (pendingCommitRecord, error) {
	who, err := state.PrincipalOf(ctx, rt.Journal(), w.Txn.Session)
	if err != nil {
		return pendingCommitRecord{}, err
	}
	body := w.Decision.Decided
	r := pendingCommitRecord{
		Commit: w.Txn.ID, Session: w.Txn.Session, Principal: who.ID, Since: w.Decision.At, Expires: body.Expires, OwnerGone: !w.Alive, Question: body.Digest,
	}
	if r.node, err = p.NodeOf(ctx, rt.Journal(), w.Txn.Session); err != nil {
		return r, err
	}
	var saw perm.TxnFacts
	var d perm.DecisionRecord
	if err := errors.Join(json.Unmarshal(body.Txn, &saw), json.Unmarshal(body.Decision, &d)); err != nil {
		return r, fmt.Errorf("the decision about the commit of %s: %w", r.Commit, err)
	}
	r.Totals, r.Effects, r.Reasons = saw.Totals, cli.Listed(saw.Effects), cli.Listed(callview.DecisionOf(&d).Reasons)
	text, err := rt.CommitText(ctx, r.Commit)
	shown := callview.Preview{Patch: text}.Truncate(most)
	if err != nil {
		shown.Note = "no difference can be shown: " + cli.PlainError(err)
	}
	r.Diff, r.Note = shown.Patch, shown.Note
	switch answer := w.Decision.Answered; {
	case answer != nil && !answer.Approved:
		r.State, r.By = "denied", answer.By
	case w.Txn.CommitDigest() != body.Digest:
		r.State = "changed"
	case answer != nil:
		r.State, r.By = "approved", answer.By
	case a.Host.Now().After(r.Expires):
		r.State = "expired"
	default:
		r.State, r.Approve = "waits", p.Hint("approve", r.Commit, "--request", r.Question)
	}
	return r, nil
}

func writeCommit(a *cli.App, at *state.Workspace, r pendingCommitRecord) {
	p, w := a.Style(), a.Out
	_, _ = fmt.Fprintf(w, "%s %s  commit of %s%s\n", p.Doubt("…"), p.Bold(r.Commit), cli.Count(r.Totals.Effects, "effect"), notResumed(p, r.State))
	row := func(name, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.Faint(fmt.Sprintf("%-9s", name)), cli.Printable(text))
		}
	}
	row("asked by", r.Principal+", in session "+r.Session)
	for _, why := range r.Reasons {
		row("because", cli.WithPlace(why.Text, why.At))
	}
	for _, e := range r.Effects {
		if e.Class != "reversible" || e.Kind == "connect" || e.Unknown {
			row(e.Kind, e.Resource.Text+" by "+e.Tool+", "+e.Class+map[bool]string{true: ", outcome unknown"}[e.Unknown])
		}
	}
	row("since", fmt.Sprintf("%s (%s)", when(r.Since), a.Host.Now().Sub(r.Since).Round(time.Second)))
	again := withTheRest + ": " + at.HintOn(r.node, "resume", r.Commit, "--at-end", "commit")
	switch r.State {
	case "waits":
		row("until", when(r.Expires))
	case "expired":
		row("until", when(r.Expires)+": it is too late to answer; to ask again, commit it "+again)
	case "changed":
		row("until", "the transaction has changed since; its next commit asks again")
	default:
		row("answer", r.State+" by "+r.By+"; the transaction is not resumed yet")
	}
	switch {
	case r.OwnerGone && r.State == "denied":
		row("process", "the one that made it has ended; revert the transaction: "+at.HintOn(r.node, "revert", r.Commit))
	case r.OwnerGone && r.State == "approved":
		row("process", "the one that made it has ended; commit it "+again)
	case r.OwnerGone:
		row("process", "the one that made it has ended; after the answer, commit it "+again)
	}
	if r.Diff != "" {
		_, _ = fmt.Fprintf(w, "  %s\n", p.Faint("did"))
		p.Patch(w, r.Diff)
	}
	row("note", r.Note)
	row("approve", r.Approve)
	if r.State == "waits" {
		row("refuse", at.Hint("deny", r.Commit)+map[bool]string{true: ", and then " + at.HintOn(r.node, "revert", r.Commit), false: ", which reverts it at its next commit"}[r.OwnerGone])
	}
}

// commitAnswerOutput is the JSON form of an answer to a commit.
type commitAnswerOutput struct {
	Commit string `json:"commit"`
	As     string `json:"as"` // approved or denied
	By     string `json:"by"`
	Why    string `json:"why"`
}

// answerCommit records an answer to a commit that waits.
func answerCommit(ctx context.Context, a *cli.App, f *answerFlags, txn, who string) error {
	if f.scope != "" {
		return cli.UsageProblem("--remember is for calls: an approval of a commit covers nothing else")
	}
	at := f.Workspace
	at.Moved = nil
	alive := false
	err := startup.WithRuntime(ctx, a, &at, func(rt *agent.Runtime) (err error) {
		f.HintFlags = at.HintFlags
		if txn, err = state.FullID(ctx, rt.Journal(), txn); err != nil {
			return err
		}
		alive, err = recordCommitAnswer(ctx, a, rt, f, &at, txn, who)
		return err
	})
	if err != nil || !f.resume || alive {
		return err
	}
	f.AtEnd = "commit"
	return f.resumeCall(ctx, f.Flags, txn)
}

// writeOtherCommit writes, with --json, the rejection that counts in place of an
// approval.
func (f *answerFlags) writeOtherCommit(ctx context.Context, a *cli.App, rt *agent.Runtime, txn string) {
	t, err := revert.Load(ctx, rt.Journal(), txn)
	if err != nil || !f.JSON || !f.approves || len(t.Commits) == 0 {
		return
	}
	if b := t.Commits[len(t.Commits)-1].Answered; b != nil && !b.Approved {
		a.WriteJSON(commitAnswerOutput{txn, "denied", b.By, b.Why})
	}
}

// recordCommitAnswer records an answer to a commit and reports it. Alive says
// whether the process runs that commits.
func recordCommitAnswer(ctx context.Context, a *cli.App, rt *agent.Runtime, f *answerFlags, at *state.Workspace, txn, who string) (alive bool, err error) {
	t, err := revert.Load(ctx, rt.Journal(), txn)
	if err != nil {
		return false, err
	}
	if alive, err = rt.Journal().Alive(ctx, t.Owner); err != nil {
		return alive, err
	}
	d, waits := t.WaitingCommit().Get()
	if f.approves && waits {
		rules, err := approval.RulesFor(ctx, at, rt.Journal(), txn)
		if err != nil {
			return alive, err
		}
		if err := approval.CheckAskers(a, at, rules, d.Decided.Processes); err != nil {
			return alive, err
		}
		if f.question == "" {
			return alive, &cli.Problem{
				Code: cli.ExitUsage, What: "the answer was not taken", Why: "an approval of a commit names the request that you looked at",
				Fix: at.Hint("pending", txn) + " shows it, with the command that approves it",
			}
		}
	}
	err = rt.Answer(ctx, agent.Answer{Txn: txn, Approved: f.approves, By: who, Why: f.why, RequestDigest: f.question})
	if err != nil {
		f.writeOtherCommit(ctx, a, rt, txn)
		return alive, answerProblem(err, at, txn)
	}
	said := map[bool]string{true: "approved", false: "denied"}[f.approves]
	if f.JSON {
		a.WriteJSON(commitAnswerOutput{txn, said, who, f.why})
		return alive, nil
	}
	node, err := at.NodeOf(ctx, rt.Journal(), t.Session)
	if err != nil {
		return alive, err
	}
	then := "its process ends it at its next commit"
	switch {
	case !alive && f.approves:
		then = "commit it " + withTheRest + ": " + at.HintOn(node, "resume", txn, "--at-end", "commit")
	case !alive:
		then = "revert it: " + at.HintOn(node, "revert", txn)
	}
	if f.resume && !alive {
		then = "it ends now"
	}
	_, _ = fmt.Fprintf(a.Out, "the commit was %s by %s; %s\n", said, cli.Printable(who), then)
	return alive, nil
}
