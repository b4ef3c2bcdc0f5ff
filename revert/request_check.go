package revert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// CheckAsked returns record.ErrDamaged if a stored request is none that a node
// asks: if it cannot be read, or if its transaction is not that of its target.
func (r *Reverter) CheckAsked(ctx context.Context, s journal.Request) error {
	q, err := openRequest(s)
	if err != nil {
		return err
	}
	return q.checkTarget(ctx, r.Journal)
}

func openRequest(s journal.Request) (Request, error) {
	q := Request{Number: s.ID, Txn: s.Txn, Node: s.Node, From: s.From, State: s.State, Asked: s.Asked, Taken: s.Taken, Ended: s.Ended, takers: s.Takers, size: s.Size}
	damaged := func(format string, args ...any) (Request, error) {
		return q, fmt.Errorf("%w: request %d: %w", record.ErrDamaged, s.ID, fmt.Errorf(format, args...))
	}
	if !slices.Contains([]journal.RequestState{journal.RequestAsked, journal.RequestTaken, journal.RequestDone, journal.RequestFailed, journal.RequestWithdrawn}, s.State) {
		return damaged("its state is %q", clip(string(s.State), maxShownName))
	}
	if len(s.Body) > journal.MaxRequestBody || len(s.Answer) > journal.MaxRequestAnswer {
		return damaged("it is larger than remit stores")
	}
	var body requestBody
	if err := json.Unmarshal(s.Body, &body); err != nil {
		return damaged("what it asks for: %w", err)
	}
	q.Redo, q.Target, q.Resources, q.By = body.Redo, body.Target, body.Resources, body.By
	q.Cascade, q.Force, q.NoMerge, q.Overlaps = body.Cascade, body.Force, body.NoMerge, body.Overlaps
	if !isName(q.Target) || !isName(q.Txn) {
		return damaged("it is about %q of transaction %q, which are no ids", clip(q.Target, maxShownName), clip(q.Txn, maxShownName))
	}
	if len(s.Answer) == 0 {
		return q, nil
	}
	var a requestAnswer
	if err := json.Unmarshal(s.Answer, &a); err != nil {
		return damaged("its answer: %w", err)
	}
	if a.Report != nil && !a.Report.isOf(q.Txn) {
		return damaged("its answer is no report about transaction %s", q.Txn)
	}
	q.Report, q.Omitted, q.Why, q.ForceHelps = a.Report, a.Omitted, a.Why, a.ForceHelps
	return q, nil
}

// maxShownName bounds what an error shows of a damaged name.
const maxShownName = 40

// isName reports whether a text can be the ID of a transaction or a call.
func isName(text string) bool {
	return text != "" && len(text) <= 128 && strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// isOf reports whether a stored report can be one about a transaction. People
// read its IDs and outcomes in a terminal.
func (r Report) isOf(txn string) bool {
	names := []string{r.Txn, r.RevertTxn}
	for _, i := range r.Items {
		names = append(names, i.Txn, i.Call)
		if !slices.Contains([]effect.Outcome{"", effect.Restored, effect.Merged, effect.Already, effect.Conflict, effect.Failed, effect.Unknown}, i.Outcome) {
			return false
		}
	}
	for _, d := range r.Dependents {
		names = append(names, d.Txn, d.Call)
	}
	return r.Txn == txn && slices.Contains([]TxnState{"", TxnOpen, TxnCommitted, TxnReverted, TxnRevertedPartial}, r.State) &&
		!slices.ContainsFunc(names, func(n string) bool { return n != "" && !isName(n) })
}

// maxAbout is the greatest number of transactions of which each reverts or
// redoes the next one. Only a damaged journal has more.
const maxAbout = 1000

// checkTarget compares the transaction of a request with the journal: it must be
// that of its target, or the one that the target reverted or redid.
func (q Request) checkTarget(ctx context.Context, j journal.Journal) error {
	txn, err := TxnOf(ctx, j, q.Target)
	if errors.Is(err, journal.ErrNotFound) {
		txn, err = q.Target, nil
	}
	for n := 0; err == nil && txn != q.Txn && txn != "" && n < maxAbout; n++ {
		var o Opening
		o, err = LoadOpening(ctx, j, txn)
		txn = o.About
	}
	if err == nil && txn == q.Txn {
		_, err = LoadOpening(ctx, j, txn)
	} else if err == nil {
		return fmt.Errorf("%w: request %d: %s does not belong to transaction %s", record.ErrDamaged, q.Number, q.Target, q.Txn)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("%w: request %d: the journal has no %s of transaction %s", record.ErrDamaged, q.Number, q.Target, q.Txn)
	}
	return err
}
