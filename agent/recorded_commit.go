package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// RecordedCommits returns the decisions about the commits of a session on the
// journal, in their order. Call is empty, and the purpose of the one request is
// commit. With unasked, it also returns the commits that no policy decided,
// because it had no such rules: their decision is allow, and their request is
// what a policy would have seen.
func RecordedCommits(ctx context.Context, j journal.Journal, session string, unasked bool) ([]RecordedDecision, error) {
	r := newReplay(session)
	if err := r.read(ctx, j, record.KindSession, record.KindLabelled, record.KindCommitDecided, record.KindCommitted); err != nil {
		return nil, fmt.Errorf("session %s: %w", session, err)
	}
	return r.commitDecisions(ctx, j, unasked)
}

func (r *replay) commitDecisions(ctx context.Context, j journal.Journal, unasked bool) ([]RecordedDecision, error) {
	decided := map[string]bool{}
	var all []RecordedDecision
	for _, c := range r.commits {
		d := RecordedDecision{Session: r.id, Txn: c.Txn, Pos: c.pos, At: c.At, Unknown: []string{"session.tools", "session.recent", "session.history"}}
		var err error
		switch b := c.Body.(type) {
		case nil: // erased
			decided[c.Txn] = true
			d.Unknown = nil
			all = append(all, d)
			continue
		case *record.CommitDecided:
			decided[c.Txn] = true
			err = r.commitDecided(&d, b)
		case *record.Committed:
			if decided[c.Txn] || !unasked {
				continue
			}
			err = r.commitUnasked(ctx, j, &d, c.raised)
		}
		if err != nil {
			return nil, fmt.Errorf("commit of %s: %w", c.Txn, err)
		}
		if len(d.Requests) > 0 {
			all = append(all, d)
		}
	}
	return all, nil
}

// recordedCommit is a decision about a commit, or a commit.
type recordedCommit struct {
	positioned
	raised int // records before it that raised labels of the session
}

// commitDecided sets what the policy saw.
func (r *replay) commitDecided(d *RecordedDecision, b *record.CommitDecided) error {
	var txn perm.TxnFacts
	if err := canon.Decode(b.Txn, &txn); err != nil {
		return err
	}
	if err := canon.Decode(b.Decision, &d.Decision); err != nil {
		return err
	}
	d.Asked = b.Effect == perm.Ask.String()
	var s perm.SessionFacts
	var raised bool
	if s.Labels, s.Requires, raised = r.raisedAt(b.Facts.Labels, b.Facts.Requires); !raised {
		d.Unknown = append(d.Unknown, "session.labels", "session.requires")
	}
	r.commitRequest(d, txn, s)
	d.Requests[0].Time = b.Facts.Time
	return nil
}

// commitUnasked sets what a policy would have seen of a commit, as far as the
// records have it.
func (r *replay) commitUnasked(ctx context.Context, j journal.Journal, d *RecordedDecision, raised int) error {
	t, err := revert.Load(ctx, j, d.Txn)
	if err != nil {
		return err
	}
	effects := t.NetEffects()
	if t.Reverts+t.Redoes != "" || len(effects) == 0 && len(t.RevertedBy) == 0 {
		return nil // it was not one that a policy decides
	}
	if len(t.RevertedBy)+len(t.Elsewhere) > 0 || slices.ContainsFunc(t.Calls, func(c *revert.Call) bool { return c.Held != nil || c.Erased != nil || c.Decided != nil }) {
		d.Unknown = append(d.Unknown, "txn.effects", "txn.totals", "txn.effects_cut") // it had others then
	}
	d.Decision.Effect = perm.Allow.String()
	txn := pipeline.CommitFacts(t, effects, perm.TxnFacts{ID: d.Txn, Calls: len(t.Calls)})
	var s perm.SessionFacts
	for _, b := range r.raised[:raised] {
		add(&s.Labels, b.Labels)
		add(&s.Requires, b.Requires)
	}
	r.commitRequest(d, txn, s)
	return nil
}

func (r *replay) commitRequest(d *RecordedDecision, txn perm.TxnFacts, s perm.SessionFacts) {
	client := r.client
	s.ID, s.Client, s.Data = r.id, &client, slices.Clone(r.data)
	if !r.opened {
		d.Unknown = append(d.Unknown, "principal", "session.client", "session.data")
	}
	d.Requests = []perm.Request{perm.Request{Principal: r.principal, Session: s, Txn: txn, Call: perm.CallFacts{URLs: []perm.URLFacts{}}, Purpose: perm.PurposeCommit, Time: d.At}.Filled()}
}
