package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// MayRevert returns an error if the policy does not let the principal revert a
// call. It evaluates the policy with purpose revert for each access whose
// effect the call would lose. If the policy asks and asking is set, MayRevert
// asks the approver. If asking is not set, an ask is an error only if there is
// no approver.
func (l *Pipeline) MayRevert(ctx context.Context, c revert.Call, asking bool) error {
	accesses := revertAccesses(c)
	if len(accesses) == 0 {
		return nil // there is no effect to revert
	}
	a := l.admittedRevert(c)
	var ds []perm.Decision
	for _, access := range accesses {
		d, err := l.decideRevert(ctx, a, c, access, perm.PurposeRevert)
		if err != nil {
			return fmt.Errorf("the policy could not be asked whether %s may take call %s back: %w", l.p.Principal.ID, a.id, err)
		}
		ds = append(ds, d)
	}
	d := strictest(ds)
	switch {
	case d.Effect() == perm.Deny:
		return fmt.Errorf("the policy does not let %s take call %s back: %s; %s", l.p.Principal.ID, a.id, reasonText(d), byPerson(a.id))
	case d.Effect() == perm.Allow:
		return nil
	}
	d = aboutRevert(d, a.id)
	switch {
	case l.recalled(ctx, a, accesses, d) != nil:
		return nil
	case l.p.Approver == nil:
		return fmt.Errorf("a person decides whether call %s is reverted, and a revert waits for no answer: %s; %s", a.id, reasonText(d), byPerson(a.id))
	case !asking:
		return nil
	}
	if _, err := l.approve(ctx, a, accesses, d); err != nil {
		return fmt.Errorf("%w; %s", err, byPerson(a.id))
	}
	return nil
}

// MayMerge returns an error if the policy does not let a revert by the principal
// keep what another process changed in a file of the call. It evaluates the
// policy with purpose merge, for a write of the file. It asks no approver: if
// the policy asks, a person reverts the call.
func (l *Pipeline) MayMerge(ctx context.Context, c revert.Call, resource string) error {
	d, err := l.decideRevert(ctx, l.admittedRevert(c), c, perm.ResourceAccess{Action: perm.Write, Resource: resource}, perm.PurposeMerge)
	switch {
	case err != nil:
		return fmt.Errorf("the policy could not be asked whether %s may merge it: %w", l.p.Principal.ID, err)
	case d.Effect() != perm.Allow:
		return fmt.Errorf("another process changed it after the call, and the policy does not let %s merge it: %s; %s", l.p.Principal.ID, reasonText(d), byPerson(c.Ref.Call))
	}
	return nil
}

// admittedRevert returns a recorded call as a decision needs it.
func (l *Pipeline) admittedRevert(c revert.Call) admitted {
	t, _ := internals.ForRevert(l.tools(), c.Tool)
	a := admitted{id: c.Ref.Call, tool: t, input: c.Started.Input, class: c.Class(), counted: l.p.Facts.Session(), seen: l.now()}
	a.redaction = &redaction{input: a.input, known: l.known, sensitive: spec(t).Hints.Sensitive}
	a.digest = string(canon.Sum("remit/input/v1", a.input))
	return a
}

// byPerson names the remaining alternative. The path of the journal is not
// known here.
func byPerson(call string) string { return "a person can revert it: remit revert " + call }

// aboutRevert tells the approver that the request is about a revert and not
// about a run of the call.
func aboutRevert(d perm.Decision, call string) perm.Decision {
	details := d.Details()
	about := perm.Reason{Set: "ask", Text: "this takes call " + call + " back"}
	details.Reasons = append([]perm.Reason{about}, details.Reasons...)
	return perm.NewDecision(perm.Ask, details)
}

// decideRevert evaluates the policy for one access. If the tool is not
// available, the policy reads the recorded facts of the call and its tool.
func (l *Pipeline) decideRevert(ctx context.Context, a admitted, c revert.Call, access perm.ResourceAccess, purpose perm.Purpose) (perm.Decision, error) {
	r, err := perm.ParseResource(access.Resource)
	if err != nil {
		return perm.Decision{}, err
	}
	facts := a.tool.Facts()
	facts.Name, facts.Confinement, facts.Coverage = c.Tool.Name, c.Started.Confinement, string(c.Started.Covers())
	if a.tool.IsZero() {
		facts.Version, facts.Digest, facts.Risk = c.Tool.Version, c.Tool.Digest, perm.RiskUndeclared
	}
	return l.ask(ctx, tool.Tool{}, &perm.Request{
		Principal: l.p.Principal.Clone(), Session: l.session(a), Txn: a.seen.txn, Tool: facts,
		Call: perm.CallFacts{
			ID: a.id, Args: json.RawMessage(slices.Clone(a.input)), EffectClass: string(a.class), Declared: c.Started.Declared,
			Batch: perm.BatchFacts{Count: 1}, Prompt: l.prompt(),
		},
		Access:  perm.AccessFacts{Action: access.Action, Resource: r.Facts(), Method: access.Method},
		Purpose: purpose, Time: a.seen.time,
	})
}

// revertAccesses returns the accesses that a revert of the call concerns: each change
// of a file, and the other accesses that the call was allowed if it has more
// effects than that.
func revertAccesses(c revert.Call) (all []perm.ResourceAccess) {
	if c.Started == nil {
		return nil
	}
	more, seen := c.Started.Reverts, map[perm.Action]map[string]bool{perm.Write: {}, perm.Delete: {}}
	for _, ch := range c.Changes {
		r, err := perm.ParseResource(ch.Resource)
		if err != nil || r.Kind() != perm.KindFile {
			more = true
			continue
		}
		access := perm.ResourceAccess{Action: perm.Write, Resource: ch.Resource}
		if ch.Post == effect.Absent {
			access.Action = perm.Delete
		}
		if done := seen[access.Action]; !done[access.Resource] {
			done[access.Resource] = true
			all = append(all, access)
		}
	}
	if !more {
		return all
	}
	files := len(all)
	for _, b := range c.Started.Access {
		if b.Action != string(perm.Read) && b.Action != string(perm.List) {
			all = append(all, perm.ResourceAccess{Action: perm.Action(b.Action), Resource: b.Resource, Method: b.Method})
		}
	}
	if len(all) == files {
		all = append(all, toolaccess.Call(c.Tool.Name))
	}
	return all
}
