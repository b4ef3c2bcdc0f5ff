package revert

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// revertMode says how calls are reverted.
type revertMode struct {
	cause  string
	by     string                     // requester; empty: the runtime
	force  bool                       // overwrite other actors' versions after storing them
	frozen map[string]string          // by resource: the call of unknown outcome that may have touched it
	upon   map[string][]dependentNote // by resource: calls that depend on it, or may
	merges merging                    // which conflicts are merged
	kept   map[string]string          // by resource: the call handled before that did not reach its version there, in words
	gone   map[string]string          // by resource: the same, for resources that the call had removed
	permit func(ctx context.Context, c Call, asking bool) error
	only   *resourceFilter // nil: every resource

	overlaps map[string][]effect.Overlap // by resource, for the report; nil: it must not have them
}

// dependentNote describes a dependent call of a resource. If the call ran in another
// folder (left is set), it counts only if its version is present.
type dependentNote struct {
	why  string
	left effect.Token
}

// dependentOn returns why the resource of a step has a dependent call.
func (m revertMode) dependentOn(s effect.Step) (why string, ok bool) {
	for _, l := range m.upon[s.Change.Resource] {
		//mutant:token
		if l.left == "" || l.left.Same(s.Change.Pre) {
			return l.why, true
		}
	}
	return "", false
}

// neededBelow returns why a version that a step removes must stay: a change
// below it stays, and its own revert needs a place to restore to.
func (m revertMode) neededBelow(s effect.Step) (why string, ok bool) {
	if !s.Plan.Applies() || s.Change.Post != effect.Absent {
		return "", false
	}
	below := s.Change.Resource + "/"
	for _, resource := range slices.Sorted(maps.Keys(m.kept)) {
		if strings.HasPrefix(resource, below) {
			return m.kept[resource], true
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(m.upon)) {
		for _, l := range m.upon[resource] {
			// Of a call that ran in another folder only the versions would tell.
			if strings.HasPrefix(resource, below) && l.left == "" {
				return l.why, true
			}
		}
	}
	return "", false
}

// versionLeft returns the version of a resource that the call left.
func (c *Call) versionLeft(resource string) (t effect.Token) {
	for _, ch := range c.Changes {
		if ch.Resource == resource {
			t = ch.Post
		}
	}
	return t
}

// keep records which resources of a call are not reverted, for the calls after
// it.
func (m revertMode) keep(c *Call, results []effect.Result) {
	why := "a later call, " + c.Ref.Call + ", changed it and could not be reverted; revert that call first"
	if m.cause == causeRedo {
		why = "an earlier call, " + c.Ref.Call + ", changed it and could not be redone; redo that call first"
	}
	for _, r := range results {
		if r.Outcome.Clean() {
			continue
		}
		m.kept[r.Resource] = why
		if m.gone != nil && c.removed(r.Resource) {
			m.gone[r.Resource] = "the resource above it was removed by a later call, " + c.Ref.Call + ", and could not be restored: another one there may give others access; revert that call first"
		}
	}
}

// removed reports whether the call removed a resource.
func (c *Call) removed(resource string) (is bool) {
	for _, ch := range c.Changes {
		if ch.Resource == resource {
			//mutant:token
			is = ch.Post.Same(effect.Absent)
		}
	}
	return is
}

// revertOneCall reverts one call. The order, "=>" being a barrier:
//
//	settle what an earlier attempt left; plan, and store what the steps overwrite;
//	Reverting{steps} => the tool's own Revert; each step => Reverted{results}
//
// A crash after the first barrier repeats all of it. The versions of the
// resources tell which steps are done, and the tool recognizes the revert key.
func (r *Reverter) revertOneCall(ctx context.Context, w Environment, rec Recorder, c *Call, m revertMode) ([]effect.Result, []effect.Step, error) {
	ctx = context.WithoutCancel(ctx) // a half-done revert is worse than a late one
	steps, blobs := r.prepare(ctx, w, c, m)
	undo, key := host.NewID(r.Host, "c_"), RevertKey(c.Started.Key)
	if c.Reversal != nil && c.Reversal.Reverted == nil && c.Reversal.Txn == rec.Txn() {
		undo = c.Reversal.Call // a repeated attempt keeps its ID
	}
	part := m.leaves(ctx, w, c)
	reverting := &record.Reverting{Of: c.Ref, Key: key, Cause: m.cause, By: m.by, Part: part, Steps: steps}
	//mutant:order
	if err := r.writeReverting(ctx, rec, undo, reverting, blobs); err != nil {
		return nil, nil, err
	}
	var results []effect.Result
	if !part {
		results = r.revertOutside(ctx, w, rec, c, undo, key)
	}
	applied := r.applySteps(ctx, w, reverting.Steps)
	lines := r.states(w, c, reverting.Steps, applied)
	results = append(results, applied...)
	if !part { // otherwise Verify finds the rest
		var found []CallRecord
		results, found = w.verifyReversal(ctx, c, undo, results)
		lines = append(found, lines...)
	}
	end := &record.Reverted{Of: c.Ref, Results: results, Complete: !part && RevertSummary(results) == "all"}
	// Reverted is durable before the caller learns it: a report must not say
	// more than recovery can find.
	//mutant:barrier
	if err := rec.Write(ctx, Write{Records: append(lines, CallRecord{Call: undo, Body: end}), Durable: true}); err != nil {
		return nil, nil, err
	}
	return results, reverting.Steps, nil
}

// verifyReversal runs the tool's Verify to check that reverted effects are gone. It
// checks the effects that the tool's Revert removed, and those that Verify
// found after the call, even if handles restored each version. If an effect is
// still present, it is not reverted, whatever Revert returned and the versions
// show.
func (w Environment) verifyReversal(ctx context.Context, c *Call, undo string, results []effect.Result) ([]effect.Result, []CallRecord) {
	reverted := len(results) > 0 && results[0].Resource == c.toolResource()
	switch {
	case w.Prober == nil || (len(results) == 0 && !c.disputed()):
		return results, nil
	case reverted && results[0].Outcome != effect.Restored, !reverted && (!c.verified() || RevertSummary(results) != "all"):
		return results, nil
	}
	found := w.Prober.ProbeReverted(ctx, *c)
	if found.Presence == "" {
		return results, nil
	}
	found.Phase, found.OK = "revert", true
	// A merged file is neither as it was nor as the call left it.
	merged := slices.ContainsFunc(results, func(r effect.Result) bool { return r.Outcome == effect.Merged })
	if f := found.Presence; f == effect.PresenceApplied || f == effect.PresencePartial && !merged {
		found.OK, found.Why = false, "its Verify still finds the effect ("+string(found.Presence)+"): "+strings.Join(found.Findings, "; ")
		said := "each resource is as it was, but "
		if reverted {
			said = "the tool's Revert ended well, but "
		} else {
			results = append([]effect.Result{{Resource: c.toolResource()}}, results...)
		}
		results[0].Outcome, results[0].Why = effect.Failed, said+found.Why
	}
	return results, []CallRecord{{Call: undo, Body: &found}}
}

// disputed reports whether the tool's Verify found the effect after an attempt
// to revert the call. The next attempt may have nothing else to do.
func (c *Call) disputed() bool {
	for _, u := range append(slices.Clone(c.earlier), c.Reversal) {
		if u != nil && u.Verified != nil && !u.Verified.OK {
			return true
		}
	}
	return false
}

// verified reports whether the tool's Verify found the effect while it was
// present.
func (c *Call) verified() bool {
	for _, v := range c.Verified {
		if v.OK && v.Presence == effect.PresenceApplied {
			return true
		}
	}
	return false
}

// prepare plans the steps, after it settled what an earlier attempt left. It
// plans a resource that it cannot read as failed, so that the others are still
// reverted.
func (r *Reverter) prepare(ctx context.Context, w Environment, c *Call, m revertMode) ([]effect.Step, []journal.Blob) {
	err := w.waitIdle(ctx, c)
	if err == nil {
		err = w.settleTries(ctx, c)
	}
	if err == nil {
		var steps []effect.Step
		var blobs []journal.Blob
		m.merges = m.merges.of(c, false)
		if steps, blobs, err = r.plan(ctx, w, m.only.remaining(c), m, r.Journal); err == nil {
			return steps, blobs
		}
	}
	steps := []effect.Step{}
	for _, ch := range m.only.remaining(c) {
		steps = append(steps, effect.Step{
			Of: []int{ch.N}, Plan: effect.Failed, Change: effect.Change{Scheme: ch.Scheme, Resource: ch.Resource}, Why: err.Error(),
		})
	}
	return steps, nil
}

// writeReverting makes the plan durable and claims its resources. If another
// transaction holds a resource, its step becomes a conflict.
func (r *Reverter) writeReverting(ctx context.Context, rec Recorder, undo string, b *record.Reverting, blobs []journal.Blob) error {
	for {
		var claims []string
		for _, s := range b.Steps {
			if s.Plan.Applies() {
				claims = append(claims, s.Change.Resource)
			}
		}
		//mutant:barrier
		err := rec.Write(ctx, Write{Records: []CallRecord{{Call: undo, Body: b}}, Blobs: blobs, Claims: claims, Durable: true})
		var held *journal.ClaimedError
		if !errors.As(err, &held) {
			return err
		}
		for i := range b.Steps {
			if b.Steps[i].Change.Resource == held.Resource {
				b.Steps[i].Plan, b.Steps[i].Why = effect.Conflict, held.Error()
			}
		}
	}
}

// revertOutside reverts the call's effects outside handles, with its tool.
func (r *Reverter) revertOutside(ctx context.Context, w Environment, rec Recorder, c *Call, undo, key string) []effect.Result {
	can, why := false, "no tools are available"
	if w.ToolReverter != nil {
		can, why = w.ToolReverter.CanRevert(ctx, *c)
	}
	outcome, needed := c.outsideOutcome(can)
	if !needed {
		return nil
	}
	res := effect.Result{Resource: c.toolResource(), Outcome: outcome}
	switch outcome {
	case effect.Restored:
		if err := r.Host.Point(ctx, "revert.tool"); err != nil {
			res.Outcome, res.Why = effect.Unknown, err.Error()
		} else if err := w.ToolReverter.RevertCall(ctx, rec, *c, undo, key); err != nil {
			res.Outcome, res.Why = effect.Failed, err.Error()
			if errors.Is(err, ErrRevertUnknown) {
				res.Outcome = effect.Unknown
			}
		}
	case effect.Failed:
		res.Why = c.noCompensation(why)
	case effect.Unknown:
		res.Why = c.unknownEffects()
	case effect.Already, effect.Conflict, effect.Merged:
	}
	return []effect.Result{res}
}

// outsideOutcome returns the possible outcome for effects of the call outside
// handles. needed is false if the call had none that its tool must revert.
func (c *Call) outsideOutcome(can bool) (outcome effect.Outcome, needed bool) {
	switch {
	case c.outside:
		return effect.Already, true // by an attempt that was incomplete because of other resources
	case can:
		return effect.Restored, true
	case c.Started.Reverts && !c.hadNoEffect():
		return effect.Failed, true
	case c.Observed(), c.maskedChanges().changed():
		return effect.Unknown, true
	case c.Confined() || c.Class() == effect.Pure:
		return "", false // its changes are its only effects
	default:
		return effect.Failed, true
	}
}

// unknownEffects returns what is unknown about an observed call, or was not stored
// of another call.
func (c *Call) unknownEffects() string {
	unseen := c.maskedChanges()
	if !c.Observed() {
		return "files that the policy masks were changed during the call, and were not stored: " + unseen.text()
	}
	masked := "masked files there"
	if text := unseen.text(); text != "" {
		masked = "files there that the policy masks (" + text + ")"
	}
	why := "the call was not confined to " + strings.Join(c.Started.Observed, ", ") + ": its effects elsewhere, or on " + masked + ", are unknown"
	switch {
	case c.Class() != effect.Pure:
		return why
	case len(c.Changes) > 0:
		return "its tool declares that it only reads, and files were changed during the call; " + why
	default:
		return "its tool declares that it only reads; " + why
	}
}

// maskedChanges are the files that the policy masked in the folders that were compared
// before and after the call.
type maskedChanges record.MaskedFiles

// maskedChanges merges the notes of the call's parts, in the order of their keys.
func (c *Call) maskedChanges() (all maskedChanges) {
	for _, key := range slices.Sorted(maps.Keys(c.Notes)) {
		var u maskedChanges
		if strings.HasSuffix(key, record.MaskedFiles{}.Key()) && json.Unmarshal(c.Notes[key], &u) == nil {
			all.Names, all.Changed = append(all.Names, u.Names...), append(all.Changed, u.Changed...)
			all.Added, all.Gone, all.More = append(all.Added, u.Added...), append(all.Gone, u.Gone...), all.More+u.More
		}
	}
	return all
}

// changed reports whether a masked name is known to have changed.
func (u maskedChanges) changed() bool { return len(u.Changed)+len(u.Added)+len(u.Gone) > 0 }

func (u maskedChanges) text() string {
	var all []string
	for _, some := range []struct {
		names []string
		mark  string
	}{{u.Names, ""}, {u.Changed, " (changed)"}, {u.Added, " (new)"}, {u.Gone, " (gone)"}} {
		for _, name := range some.names {
			all = append(all, name+some.mark)
		}
	}
	if u.More > 0 {
		all = append(all, strconv.Itoa(u.More)+" more")
	}
	return strings.Join(all, ", ")
}

func (c *Call) noCompensation(why string) string {
	if c.Started.Reverts && !c.hadNoEffect() {
		return why
	}
	return "a " + string(c.Class()) + " call cannot be reverted: " + why
}

// toolResource returns the resource for a call's effects outside handles.
func (c *Call) toolResource() string { return "tool://" + c.Tool.Name }

// hadNoEffect reports whether the call ended with proof that its changes were
// its only effects to revert.
func (c *Call) hadNoEffect() bool { return c.Phase == PhaseFailed && c.Failed.Proof != "reverted" }

// plan calls the Plan of each scheme, newest kind of change first. It freezes
// what a call of unknown outcome may have touched.
func (r *Reverter) plan(ctx context.Context, w Environment, changes []effect.Change, m revertMode, keep journal.ContentStore) ([]effect.Step, []journal.Blob, error) {
	steps, blobs := []effect.Step{}, []journal.Blob{}
	for _, name := range schemesOf(changes) {
		var own []effect.Change
		for _, ch := range changes {
			if ch.Scheme == name {
				own = append(own, ch)
			}
		}
		s, ok := w.scheme(name)
		if !ok {
			for _, ch := range own {
				steps = append(steps, effect.Step{Of: []int{ch.N}, Plan: effect.Failed, Change: effect.Change{Scheme: name, Resource: ch.Resource}, Why: "no scheme here can restore " + name + " resources"})
			}
			continue
		}
		planned, kept, err := s.Plan(ctx, own, keep)
		if err == nil {
			planned, kept, err = m.merge(ctx, s, own, planned, kept, keep)
		}
		if err == nil && m.force {
			planned, kept, err = force(ctx, s, own, planned, kept, keep)
		}
		if err != nil {
			return nil, nil, err
		}
		steps, blobs = append(steps, planned...), append(blobs, kept...)
	}
	for i := range steps {
		// A dependent change stays. Then a version that equals the earlier one
		// is not reverted already: reverting the dependent call too would
		// restore the change. And a version that equals this call's belongs to
		// the dependent call, and would be lost without a message.
		if on, ok := m.dependentOn(steps[i]); ok && (steps[i].Plan == effect.Conflict || steps[i].Plan == effect.Already || steps[i].Plan.Applies() && !m.force) {
			steps[i].Plan, steps[i].Why = effect.Conflict, on
		}
		// A change below a version that stays is not reverted before it.
		// Otherwise that version could not be reverted any more, or would
		// restore what it had found. It is not reverted already either: the
		// other call may have left it half done.
		if why, ok := m.kept[steps[i].Change.Resource]; ok && steps[i].Plan.Clean() {
			steps[i].Plan, steps[i].Why = effect.Conflict, why
		}
		if why, ok := m.neededBelow(steps[i]); ok && !m.force {
			steps[i].Plan, steps[i].Why = effect.Conflict, why
		}
		for above := range Ancestors(steps[i].Change.Resource) {
			if why, ok := m.gone[above]; ok && steps[i].Plan.Applies() {
				steps[i].Plan, steps[i].Why = effect.Conflict, why
			}
		}
		if holder, ok := m.frozen[steps[i].Change.Resource]; ok {
			steps[i].Plan, steps[i].Why = effect.Unknown, "a later call, "+holder+", may have touched it and its outcome is unknown"
		}
	}
	return steps, blobs, nil
}

func (r *Reverter) applyStep(ctx context.Context, w Environment, s effect.Step) effect.Result {
	if !s.Plan.Applies() {
		return effect.Result{Resource: s.Change.Resource, Outcome: s.Plan, Now: s.Change.Pre, Why: s.Why}
	}
	if err := r.Host.Point(ctx, "revert.apply"); err != nil {
		return effect.Result{Resource: s.Change.Resource, Outcome: effect.Unknown, Why: err.Error()}
	}
	scheme, _ := w.scheme(s.Change.Scheme)
	res := scheme.Apply(ctx, s, r.Journal)
	res.Forced = s.Forced && res.Outcome == effect.Restored
	return res
}

// settleTries settles what unfinished or failed attempts to revert or redo a
// call left, newest first. It settles all of them: an attempt that failed here
// has left the work of the earlier ones.
func (w Environment) settleTries(ctx context.Context, c *Call) error {
	for _, u := range slices.Backward(c.tries) {
		if u.away {
			continue
		}
		for _, ch := range u.unsettled() {
			if err := w.settleChange(ctx, ch); err != nil {
				return err
			}
		}
	}
	return nil
}

// unsettled returns what the attempt may have left half done, in the order of
// settling: the changes of the tool's Revert, then its steps.
func (u *Reversal) unsettled() []effect.Change {
	clean := map[string]bool{}
	if u.Reverted != nil {
		for _, r := range u.Reverted.Results {
			clean[r.Resource] = r.Outcome.Clean()
		}
		if u.Reverted.Complete {
			return nil
		}
	}
	open := slices.Clone(u.Changes)
	slices.Reverse(open)
	for _, s := range u.Reverting.Steps {
		if s.Plan.Applies() && !clean[s.Change.Resource] {
			open = append(open, s.Change)
		}
	}
	return open
}

func (w Environment) settleChange(ctx context.Context, c effect.Change) error {
	scheme, ok := w.scheme(c.Scheme)
	if _, atomic := scheme.(AtomicScheme); !ok || atomic {
		return nil
	}
	_, err := scheme.Settle(ctx, c)
	return err
}

func (w Environment) scheme(name string) (Scheme, bool) {
	for _, s := range w.Schemes {
		if s.Name() == name {
			return s, true
		}
	}
	return nil, false
}

// schemesOf returns the schemes of a call's changes, newest first.
func schemesOf(changes []effect.Change) []string {
	var names []string
	for i := len(changes) - 1; i >= 0; i-- {
		if !slices.Contains(names, changes[i].Scheme) {
			names = append(names, changes[i].Scheme)
		}
	}
	return names
}
