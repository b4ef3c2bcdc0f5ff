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

// revertMode is how calls are taken back.
type revertMode struct {
	cause  string
	by     string             // who asked; empty: the runtime itself did
	force  bool               // what somebody else left is overwritten, once it is kept
	frozen map[string]string  // by resource: the call of unknown outcome that may have touched it
	upon   map[string][]lying // by resource: what lies on it, or may
	kept   map[string]string  // by resource: the call before it that is not as it should be there, in words
	gone   map[string]string  // by resource: the same, of what that call had removed
	permit func(ctx context.Context, c Call, asking bool) error
}

// lying says in words which call lies on a resource. One that ran in another folder
// (left is set) does so only if the version that it left is there.
type lying struct {
	why  string
	left effect.Token
}

// lies returns what lies on the resource of a step.
func (m revertMode) lies(s effect.Step) (why string, ok bool) {
	for _, l := range m.upon[s.Change.Resource] {
		//mutant:token
		if l.left == "" || l.left.Same(s.Change.Pre) {
			return l.why, true
		}
	}
	return "", false
}

// left is the version that the call left of a resource.
func (c *Call) left(resource string) (t effect.Token) {
	for _, ch := range c.Changes {
		if ch.Resource == resource {
			t = ch.Post
		}
	}
	return t
}

// keep notes where a call is not as it should be, for those that come after it.
func (m revertMode) keep(c *Call, results []effect.Result) {
	why := "a later call, " + c.Ref.Call + ", changed it and could not be taken back; that one has to go first"
	if m.cause == CauseRedo {
		why = "an earlier call, " + c.Ref.Call + ", changed it and could not be brought back; that one has to come first"
	}
	for _, r := range results {
		if r.Outcome.Clean() {
			continue
		}
		m.kept[r.Resource] = why
		if m.gone != nil && c.removed(r.Resource) {
			m.gone[r.Resource] = "what was above it was removed by a later call, " + c.Ref.Call + ", and could not be brought back: another one there may let others in; that call has to go first"
		}
	}
}

// removed reports whether the call left nothing of a resource.
func (c *Call) removed(resource string) (is bool) {
	for _, ch := range c.Changes {
		if ch.Resource == resource {
			//mutant:token
			is = ch.Post.Same(effect.Absent)
		}
	}
	return is
}

// takeBackCall takes one call back. The order, "=>" being a barrier:
//
//	settle what an earlier attempt left; plan and keep what will be displaced;
//	Reverting{steps} => the tool's own Revert; each step => Reverted{results}
//
// A crash after the first barrier repeats the whole: the versions of the
// resources tell which steps are done, and the undo key tells the tool.
func (r *Reverter) takeBackCall(ctx context.Context, w Environment, rec Recorder, c *Call, m revertMode) ([]effect.Result, []effect.Step, error) {
	ctx = context.WithoutCancel(ctx) // half an undo is worse than a late one
	steps, blobs := r.prepare(ctx, w, c, m)
	undo, key := host.NewID(r.Host, "c_"), RevertKey(c.Started.Key)
	if c.Undo != nil && c.Undo.Reverted == nil && c.Undo.Txn == rec.Txn() {
		undo = c.Undo.Call // an attempt that died goes on under its own id
	}
	reverting := &record.Reverting{Of: c.Ref, Key: key, Cause: m.cause, By: m.by, Steps: steps}
	//mutant:order
	if err := r.writeReverting(ctx, rec, undo, reverting, blobs); err != nil {
		return nil, nil, err
	}
	results := r.undoOutside(ctx, w, rec, c, undo, key)
	applied := r.applySteps(ctx, w, reverting.Steps)
	states := r.states(w, c, reverting.Steps, applied)
	results, lines := w.verifyUndo(ctx, c, undo, append(results, applied...))
	lines = append(lines, states...)
	end := &record.Reverted{Of: c.Ref, Results: results, Complete: RevertSummary(results) == "all"}
	// Reverted is durable before anybody is told: a report must not be better
	// than what recovery would find.
	//mutant:barrier
	if err := rec.Write(ctx, Write{Records: append(lines, CallRecord{Call: undo, Body: end}), Durable: true}); err != nil {
		return nil, nil, err
	}
	return results, reverting.Steps, nil
}

// verifyUndo has the tool's Verify look whether what was taken back is gone: what
// its Revert took back, and what it found itself after the call, also where
// handles restored each version. An effect that is still there is not undone,
// whatever the Revert returned and the versions say.
func (w Environment) verifyUndo(ctx context.Context, c *Call, undo string, results []effect.Result) ([]effect.Result, []CallRecord) {
	reverted := len(results) > 0 && results[0].Resource == c.toolResource()
	switch {
	case w.Prober == nil || (len(results) == 0 && !c.disputed()):
		return results, nil
	case reverted && results[0].Outcome != effect.Restored, !reverted && (!c.verified() || RevertSummary(results) != "all"):
		return results, nil
	}
	found := w.Prober.ProbeReverted(ctx, *c)
	if found.Verdict == "" {
		return results, nil
	}
	found.Phase, found.OK = "undo", true
	if f := Finding(found.Verdict); f == Applied || f == Partial {
		found.OK, found.Why = false, "its Verify still finds the effect ("+found.Verdict+"): "+strings.Join(found.Findings, "; ")
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

// disputed reports whether the tool's Verify found the effect after an attempt to
// take the call back. The next one may have nothing else left to do.
func (c *Call) disputed() bool {
	for _, u := range append(slices.Clone(c.earlier), c.Undo) {
		if u != nil && u.Verified != nil && !u.Verified.OK {
			return true
		}
	}
	return false
}

// verified reports whether the tool's Verify found the effect while it was there.
func (c *Call) verified() bool {
	for _, v := range c.Verified {
		if v.OK && v.Verdict == string(Applied) {
			return true
		}
	}
	return false
}

// prepare plans, once what an earlier attempt left is in order. What cannot be
// looked at is planned as failed, so that one bad resource does not keep the
// others from being undone.
func (r *Reverter) prepare(ctx context.Context, w Environment, c *Call, m revertMode) ([]effect.Step, []journal.Blob) {
	err := w.still(ctx, c)
	if err == nil {
		err = w.settleTries(ctx, c)
	}
	if err == nil {
		var steps []effect.Step
		var blobs []journal.Blob
		if steps, blobs, err = r.plan(ctx, w, c.remaining(), m, r.Journal); err == nil {
			return steps, blobs
		}
	}
	steps := []effect.Step{}
	for _, ch := range c.remaining() {
		steps = append(steps, effect.Step{
			Of: []int{ch.N}, Plan: effect.Failed, Change: effect.Change{Scheme: ch.Scheme, Resource: ch.Resource}, Why: err.Error(),
		})
	}
	return steps, nil
}

// writeReverting makes the plan durable and claims what it touches. A resource
// that another transaction holds is left to it: its step becomes a conflict.
func (r *Reverter) writeReverting(ctx context.Context, rec Recorder, undo string, b *record.Reverting, blobs []journal.Blob) error {
	for {
		var claims []string
		for _, s := range b.Steps {
			if s.Plan == effect.Restored {
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

// undoOutside takes back what the call did outside handles, by its tool.
func (r *Reverter) undoOutside(ctx context.Context, w Environment, rec Recorder, c *Call, undo, key string) []effect.Result {
	can, why := false, "no tools are at hand"
	if w.Undoer != nil {
		can, why = w.Undoer.CanRevert(ctx, *c)
	}
	outcome, needed := c.outsideWay(can)
	if !needed {
		return nil
	}
	res := effect.Result{Resource: c.toolResource(), Outcome: outcome}
	switch outcome {
	case effect.Restored:
		if err := r.Host.Point(ctx, "revert.tool"); err != nil {
			res.Outcome, res.Why = effect.Unknown, err.Error()
		} else if err := w.Undoer.RevertCall(ctx, rec, *c, undo, key); err != nil {
			res.Outcome, res.Why = effect.Failed, err.Error()
			if errors.Is(err, ErrRevertUnknown) {
				res.Outcome = effect.Unknown
			}
		}
	case effect.Failed:
		res.Why = c.noWay(why)
	case effect.Unknown:
		res.Why = c.elsewhere()
	case effect.Already, effect.Conflict:
	}
	return []effect.Result{res}
}

// outsideWay says what can be done about effects of the call outside handles;
// not needed where it had none that its tool would have to take back.
func (c *Call) outsideWay(can bool) (outcome effect.Outcome, needed bool) {
	switch {
	case c.outside:
		return effect.Already, true // by an attempt that other resources kept from being complete
	case can:
		return effect.Restored, true
	case c.Started.Reverts && !c.hadNoEffect():
		return effect.Failed, true
	case c.Observed(), c.unseen().changed():
		return effect.Unknown, true
	case c.Confined() || c.Class() == effect.Pure:
		return "", false // its changes are all it did
	default:
		return effect.Failed, true
	}
}

// elsewhere says what is not known of an observed call, or was not kept of another one.
func (c *Call) elsewhere() string {
	unseen := c.unseen()
	if !c.Observed() {
		return "files that the policy masks were changed during the call, and nothing of them was kept: " + unseen.text()
	}
	masked := "masked files there"
	if text := unseen.text(); text != "" {
		masked = "files there that the policy masks (" + text + ")"
	}
	why := "nothing held the call to " + strings.Join(c.Started.Observed, ", ") + ": what it did elsewhere, or to " + masked + ", is unknown"
	switch {
	case c.Class() != effect.Pure:
		return why
	case len(c.Changes) > 0:
		return "its tool says that it only reads, and files were changed during the call; " + why
	default:
		return "its tool says that it only reads; " + why
	}
}

// unseen is what the policy masked of the folders that were compared before and after the call.
type unseen record.Unseen

// unseen gathers what the parts of the call noted, in the order of their keys.
func (c *Call) unseen() (all unseen) {
	for _, key := range slices.Sorted(maps.Keys(c.Notes)) {
		var u unseen
		if strings.HasSuffix(key, record.Unseen{}.Key()) && json.Unmarshal(c.Notes[key], &u) == nil {
			all.Names, all.Changed = append(all.Names, u.Names...), append(all.Changed, u.Changed...)
			all.Came, all.Gone, all.More = append(all.Came, u.Came...), append(all.Gone, u.Gone...), all.More+u.More
		}
	}
	return all
}

// changed reports whether something of it is known to have changed.
func (u unseen) changed() bool { return len(u.Changed)+len(u.Came)+len(u.Gone) > 0 }

func (u unseen) text() string {
	var all []string
	for _, some := range []struct {
		names []string
		mark  string
	}{{u.Names, ""}, {u.Changed, " (changed)"}, {u.Came, " (new)"}, {u.Gone, " (gone)"}} {
		for _, name := range some.names {
			all = append(all, name+some.mark)
		}
	}
	if u.More > 0 {
		all = append(all, strconv.Itoa(u.More)+" more")
	}
	return strings.Join(all, ", ")
}

func (c *Call) noWay(why string) string {
	if c.Started.Reverts && !c.hadNoEffect() {
		return why
	}
	return "a " + string(c.Class()) + " call without a way back: " + why
}

// toolResource names what a call did outside handles.
func (c *Call) toolResource() string { return "tool://" + c.Tool.Name }

// hadNoEffect reports whether the call ended with proof that there was nothing
// but its changes to take back.
func (c *Call) hadNoEffect() bool { return c.Phase == PhaseFailed && c.Failed.Proof != "taken_back" }

// plan asks each scheme, newest kind of change first, and freezes what a call
// of unknown outcome may have touched.
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
				steps = append(steps, effect.Step{Of: []int{ch.N}, Plan: effect.Failed, Change: effect.Change{Scheme: name, Resource: ch.Resource}, Why: "nothing here knows how to restore " + name + " resources"})
			}
			continue
		}
		planned, kept, err := s.Plan(ctx, own, keep)
		if err == nil && m.force {
			planned, kept, err = force(ctx, s, own, planned, kept, keep)
		}
		if err != nil {
			return nil, nil, err
		}
		steps, blobs = append(steps, planned...), append(blobs, kept...)
	}
	for i := range steps {
		// Something lies on it that stays. What is as before is not gone already then: taking
		// the other back, too, would bring it back. And what looks like a version of this call
		// is one of the other, which would be lost without a word.
		if on, ok := m.lies(steps[i]); ok && (steps[i].Plan == effect.Conflict || steps[i].Plan == effect.Already || steps[i].Plan == effect.Restored && !m.force) {
			steps[i].Plan, steps[i].Why = effect.Conflict, on
		}
		// What lies below a version that stays does not go before it: that one could
		// not go any more then, or would bring back what it had found. Nor is it gone
		// already: who knows what the other one has left half done.
		if why, ok := m.kept[steps[i].Change.Resource]; ok && steps[i].Plan.Clean() {
			steps[i].Plan, steps[i].Why = effect.Conflict, why
		}
		for above := range Ancestors(steps[i].Change.Resource) {
			if why, ok := m.gone[above]; ok && steps[i].Plan == effect.Restored {
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
	if s.Plan != effect.Restored {
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

// settleTries puts in order what the attempts to take a call back, or to bring it
// back, left that have no end or went wrong: newest first, and all of them, since
// one that could not do this has left what was there before it.
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

// unsettled lists what the attempt may have left half done, in the order in which
// it is put in order: what the tool's Revert was doing, then its steps.
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
		if s.Plan == effect.Restored && !clean[s.Change.Resource] {
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

// schemesOf lists the schemes of a call's changes, newest first.
func schemesOf(changes []effect.Change) []string {
	var names []string
	for i := len(changes) - 1; i >= 0; i-- {
		if !slices.Contains(names, changes[i].Scheme) {
			names = append(names, changes[i].Scheme)
		}
	}
	return names
}
