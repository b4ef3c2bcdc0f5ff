package revert

import (
	"fmt"
	"slices"
	"time"

	"github.com/samber/mo"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/record"
)

// CommitDecision is a decision about the commit of a transaction, as the journal
// has it.
type CommitDecision struct {
	ID       string
	At       time.Time
	Decided  *record.CommitDecided // nil: erased
	Answered *record.Answered      // given on the journal: a rejection if there is one, else the newest; nil: none
}

// WaitingCommit returns the decision with which the commit of the transaction
// waits for an answer. The answer can be given, until the next commit acts on it.
func (t *Txn) WaitingCommit() mo.Option[CommitDecision] {
	d := t.lastCommit()
	return mo.TupleToOption(d, t.End == "" && !t.Aborting && !t.Committing && d.Decided != nil && d.Decided.Waits())
}

// Permitted reports whether no decision about the commit stands against it: the
// newest one permits it, or there is none.
func (t *Txn) Permitted() bool {
	return len(t.Commits) == 0 || t.lastCommit().Decided != nil && t.lastCommit().Decided.Permits()
}

// Waits reports whether a call of the transaction or its commit waits for an
// approval before it goes on.
func (t *Txn) Waits() bool {
	return t.WaitingCommit().IsPresent() || slices.ContainsFunc(t.Calls, func(c *Call) bool { return c.Phase == PhasePending })
}

func (t *Txn) lastCommit() CommitDecision {
	if len(t.Commits) == 0 {
		return CommitDecision{}
	}
	return t.Commits[len(t.Commits)-1]
}

// decideCommit folds a decision about the commit.
func (t *Txn) decideCommit(r record.Record, b *record.CommitDecided) error {
	if r.Call == "" || t.Committing || t.Aborting {
		return fmt.Errorf("%s of transaction %s, whose end has begun", r.Kind, t.ID)
	}
	t.Commits = append(t.Commits, CommitDecision{ID: r.Call, At: r.At, Decided: b})
	return nil
}

// answerCommit folds an answer to a decision about the commit, and reports
// whether it is one.
func (t *Txn) answerCommit(r record.Record) bool {
	b, ok := r.Body.(*record.Answered)
	i := slices.IndexFunc(t.Commits, func(d CommitDecision) bool { return d.ID == r.Call })
	if !ok || i < 0 {
		return false
	}
	//mutant:check
	if d := &t.Commits[i]; d.Answered == nil || d.Answered.Approved { // a rejection stays
		d.Answered = b
	}
	return true
}

// checkPermitted refuses a commit that the newest decision does not permit.
func (t *Txn) checkPermitted(r record.Record) error {
	//mutant:check
	if d := t.lastCommit().Decided; d != nil && !d.Permits() {
		return fmt.Errorf("%s of transaction %s, whose commit was not permitted", r.Kind, t.ID)
	}
	return nil
}

// commitGone folds a decision about the commit whose body was destroyed.
func (t *Txn) commitGone(id string, at time.Time) {
	t.Commits = append(t.Commits, CommitDecision{ID: id, At: at})
}

// addCommits adds the decisions about the commit to an erasure. They can repeat
// what a call contains, so they go with the first call that is erased.
func (e *eraseStep) addCommits(t *Txn) {
	for _, d := range t.Commits {
		if d.Decided != nil {
			e.add(t.ID, d.ID, &record.Erased{})
			e.words++
		}
	}
}

// CommitDigest identifies all that a commit of the transaction makes permanent
// and releases. An approval of the commit names it: it is the same if and only
// if the same calls left the same versions and the same calls are held.
func (t *Txn) CommitDigest() string {
	parts := [][]byte{[]byte(t.ID), []byte(t.Session)}
	add := func(texts ...string) {
		for _, text := range texts {
			parts = append(parts, []byte(text))
		}
	}
	for _, c := range t.Calls {
		held := c.IsHeld()
		if !held && !c.HasEffects() && len(c.ContactedHosts()) == 0 {
			continue
		}
		add("call", c.Ref.Call, string(c.Phase), c.Tool.Digest, c.Tool.Settings)
		if held {
			add("held", c.Held.Key, c.Held.InputDigest)
		} else if c.Started != nil {
			add("started", c.Started.Key, c.Started.InputDigest)
		}
		for _, ch := range c.remaining() {
			add("change", ch.Resource, ch.Kind, string(ch.Pre), string(ch.Post))
		}
		for _, h := range c.ContactedHosts() {
			add("host", h.Origin)
		}
	}
	return string(canon.Sum("remit/commit/v1", parts...))
}
