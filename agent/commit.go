package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// CommitError says that the policy did not let a transaction commit.
//
//   - errors.Is(err, tool.ErrPending): the commit waits for an answer. The
//     transaction is open. After Runtime.Answer, commit again, in this process or
//     after Runtime.ResumeTxn in another one. If the transaction changed
//     meanwhile, the policy asks again.
//   - errors.Is(err, tool.ErrDenied): the commit was denied, and the transaction
//     was reverted as Report says. If the revert is not complete, errors.Is(err,
//     ErrPartialRevert) too.
//   - Otherwise the policy could not decide, for example in time
//     (perm.ErrTimeout). The transaction is open: commit again, or revert.
type CommitError struct {
	Txn     string
	Request string // digest of the approval request, which an approval names; empty: the commit does not wait
	Why     string // for the model and for people
	Report  revert.Report
	err     error
}

func (e *CommitError) Error() string {
	switch {
	case errors.Is(e.err, tool.ErrPending):
		return fmt.Sprintf("the commit of transaction %s waits for approval: %s; its effects stay until a person answers, and another commit after the answer ends it", e.Txn, e.Why)
	case errors.Is(e.err, tool.ErrDenied):
		return fmt.Sprintf("the commit of transaction %s was denied: %s; %s", e.Txn, e.Why, e.reverted())
	}
	return fmt.Sprintf("transaction %s is not committed, and stays open: %s; commit it again, or revert it", e.Txn, e.Why)
}

// reverted says what the revert of a denied transaction left.
func (e *CommitError) reverted() string {
	left := e.Report.NotReverted()
	if len(left) == 0 && errors.Is(e.err, ErrPartialRevert) {
		return "its revert is not complete"
	}
	if len(left) == 0 {
		return "it was reverted"
	}
	const most = 8
	var names []string
	for _, item := range left[:min(len(left), most)] {
		names = append(names, fmt.Sprintf("%s (%s)", item.Resource, item.Outcome))
	}
	if len(left) > most {
		names = append(names, fmt.Sprintf("%d more", len(left)-most))
	}
	return "it was reverted, except " + strings.Join(names, ", ")
}

// Unwrap returns the errors that CommitError names.
func (e *CommitError) Unwrap() error { return e.err }

// ended reports whether the denial ended the transaction.
func (e *CommitError) ended() bool { return errors.Is(e.err, tool.ErrDenied) }

// Outcome returns the outcome of a call of the transaction that ended done or
// held, with what became of it: a call that was reverted was no success.
func (e *CommitError) Outcome(o tool.Outcome) tool.Outcome {
	if !e.ended() {
		o.Text = strings.TrimSuffix(o.Text, "\n") + "\n" + canon.Sentence(e.Error())
		return o
	}
	o.Status, o.Stage, o.Result, o.MediaType, o.Output = tool.StatusDenied, "policy", tool.Result{}, "", []byte("null")
	for _, item := range e.Report.Items {
		if item.Call == o.Call && item.Action != revert.ActionDrop {
			o.RevertResults = append(o.RevertResults, item.Result)
		}
	}
	if o.Reverted = revert.RevertSummary(o.RevertResults); o.Reverted != "all" {
		o.Status = tool.StatusUnknown // something of it is left
	}
	o.Error = &tool.Problem{What: "the commit of the call was denied", Why: e.Why}
	o.Text = "The call ran, and then it was taken back. " + canon.Sentence(e.Error())
	return o
}

// decideCommit asks the policy about the commit. It returns the record that
// permits it, none if nothing is to be decided. The caller holds the lock of the
// transaction, and no call is in flight.
func (tx *Txn) decideCommit(ctx context.Context) ([]revert.CallRecord, error) {
	if !tx.line.DecidesCommits() && !tx.asked.Load() || tx.rec.OnlyReads() || tx.outbox.begun {
		return nil, nil
	}
	t, err := revert.Load(ctx, tx.s.rt.journal, tx.ID())
	if err != nil {
		return nil, tx.undecided(err)
	}
	if t.Committing { // it was permitted, and has begun to release calls
		return nil, nil
	}
	body, err := tx.line.DecideCommit(ctx, t, func(ctx context.Context) (string, error) { return tx.s.rt.CommitText(ctx, tx.ID()) })
	switch {
	case err != nil:
		return nil, tx.undecided(err)
	case body == nil:
		return nil, nil
	}
	lines := []revert.CallRecord{{Call: host.NewID(tx.s.rt.services.Host, "d_"), Body: body}}
	switch {
	case body.Permits():
		return lines, nil
	case body.Waits():
		return nil, tx.waitsForCommit(ctx, t, body, lines)
	}
	return nil, tx.denyCommit(ctx, body, lines)
}

func (tx *Txn) undecided(err error) error {
	return &CommitError{Txn: tx.ID(), Why: err.Error(), err: err}
}

// waitsForCommit records that the commit waits, unless the journal has it.
func (tx *Txn) waitsForCommit(ctx context.Context, t *revert.Txn, body *record.CommitDecided, lines []revert.CallRecord) error {
	if prior, waits := t.WaitingCommit().Get(); !waits || prior.Decided != body {
		//mutant:barrier
		if err := tx.rec.Write(context.WithoutCancel(ctx), revert.Write{Records: lines, Durable: true}); err != nil {
			return tx.undecided(err)
		}
		tx.asked.Store(true)
		tx.line.ReportCommit(t, body)
	}
	return &CommitError{Txn: tx.ID(), Request: body.Digest, Why: pipeline.CommitReasons(body), err: tool.ErrPending}
}

// denyCommit reverts the transaction. The denial is durable before anything is
// reverted, so recovery completes the revert after a crash.
func (tx *Txn) denyCommit(ctx context.Context, body *record.CommitDecided, lines []revert.CallRecord) error {
	ctx = context.WithoutCancel(ctx)
	lines = append(lines, revert.CallRecord{Body: &record.Aborting{Why: "revert", Denied: true}})
	tx.going = true // also if the write fails: the journal can have it
	//mutant:barrier
	if err := tx.rec.Write(ctx, revert.Write{Records: lines, Durable: true}); err != nil {
		return tx.undecided(err)
	}
	denied := &CommitError{Txn: tx.ID(), Why: pipeline.CommitReasons(body), err: tool.ErrDenied}
	rep, err := tx.s.rt.services.Reverter.Abort(ctx, tx.ID(), revert.Options{By: deniedBy(body)})
	if denied.Report = rep; err == nil {
		tx.end()
	}
	if err = partial(rep, err); err != nil {
		denied.err = errors.Join(tool.ErrDenied, err)
	}
	return denied
}

// deniedBy names who rejected the commit. It returns "" for a denial by the
// policy.
func deniedBy(body *record.CommitDecided) string {
	if body.Answer != nil {
		return body.Answer.By
	}
	return ""
}

// maxCommitText bounds the difference that an approver sees, in bytes.
const maxCommitText = 64 << 10

// CommitText returns what an approver of the commit of a transaction sees of it:
// its difference, of at most some hundred kilobytes.
func (rt *Runtime) CommitText(ctx context.Context, txn string) (string, error) {
	d, err := rt.Diff(ctx, txn)
	if err != nil {
		return "", err
	}
	return d.Summary(ctx, rt.diffName, maxCommitText)
}

// diffName returns the name of a resource in a difference. The name of the root
// is left out if there is only one.
func (rt *Runtime) diffName(resource string) string {
	r, err := perm.ParseResource(resource)
	if err != nil || r.Kind() != perm.KindFile {
		return resource
	}
	f := r.Facts()
	if len(rt.roots) == 1 {
		return f.Path
	}
	return f.Root + "/" + f.Path
}

// answerCommit records an answer to a commit that waits.
func (rt *Runtime) answerCommit(ctx context.Context, r Answer) error {
	t, err := revert.Load(ctx, rt.journal, r.Txn)
	if err != nil {
		return err
	}
	who, err := rt.principalOf(ctx, t.Session)
	if err != nil {
		return err
	}
	d, waits := t.WaitingCommit().Get()
	invalid := func(format string, a ...any) error {
		return fmt.Errorf(format+": %w", append(a, tool.ErrInvalid)...)
	}
	switch {
	case r.Call != "":
		return invalid("an answer is for a call or for the commit of a transaction")
	case !waits:
		return invalid("the commit of transaction %s does not wait for an approval", r.Txn)
	case r.By == "":
		return invalid("an answer names who gives it")
	case r.By == who.ID || slices.Contains(who.Chain, r.By):
		return fmt.Errorf("%q made the transaction, or delegated to its session, so another person must answer: %w", r.By, tool.ErrDenied)
	case r.Approved && r.RequestDigest == "":
		return invalid("the approval of the commit of transaction %s names the request that the person looked at", r.Txn)
	case r.RequestDigest != "" && r.RequestDigest != d.Decided.Digest, r.Approved && t.CommitDigest() != d.Decided.Digest:
		return invalid("transaction %s has changed since it was asked about: commit it again, which asks again", r.Txn)
	case r.Approved && d.Answered != nil && !d.Answered.Approved:
		return invalid("the commit of transaction %s was refused by %s, and what was refused stays refused", r.Txn, d.Answered.By)
	case rt.services.Host.Now().After(d.Decided.Expires):
		return invalid("the time to answer was up at %s: commit again, which asks again", d.Decided.Expires.Format("2006-01-02 15:04:05Z"))
	}
	body := &record.Answered{Approved: r.Approved, By: r.By, Why: r.Why, Digest: d.Decided.Digest}
	if err := rt.answer(ctx, t.Session, revert.CallRecord{Txn: t.ID, Call: d.ID, Body: body}); err != nil {
		return err
	}
	return rt.commitStands(ctx, r, d.ID)
}
