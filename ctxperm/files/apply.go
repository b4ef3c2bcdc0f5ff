package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// planStep is a planned step in progress.
type planStep struct {
	step effect.Step
	inv  inverse
	swap *swap // nil: its path cannot be reached
	img  fileImage
	err  error
	res  effect.Result
}

// Apply performs one planned step in the same way as a first change. It
// exchanges the files and checks the displaced one. If that is not the planned
// version, it exchanges them back.
func (s scheme) Apply(ctx context.Context, step effect.Step, keep journal.ContentStore) effect.Result {
	one := []*planStep{s.newPlanStep(step)}
	if w := one[0].swap; w != nil {
		defer w.pinFolder()()
	}
	times := spansOf(ctx, one)
	one[0].begin(ctx, keep)
	one[0].run(ctx)
	times.setTimes(ctx, one)
	return one[0].res
}

// ApplyAll performs planned steps in their order, each as Apply does. The order
// of durable writes equals that of the calls of this package (see performAll).
// So a crash leaves the same states:
//
//	narrow folders, as far as they let others in less than before => sync them
//	wave by wave; no step of a wave makes the directory of another:
//	  look at each; prepare the new files under their draft names => sync them at once
//	  exchange each, look at what was displaced, exchange back or remove it
//	sync the names => open folders that let others in more than before
//	set the times of folders => sync them, after the last wave
//
// Until then the counter-change of each step in the journal identifies its
// state.
func (s scheme) ApplyAll(ctx context.Context, steps []effect.Step, keep journal.ContentStore) []effect.Result {
	if len(steps) == 1 {
		return []effect.Result{s.Apply(ctx, steps[0], keep)}
	}
	all, d := make([]*planStep, len(steps)), pendingSyncs{}
	for i, step := range steps {
		all[i] = s.newPlanStep(step)
		if all[i].swap != nil {
			d.deferSync(all[i].swap)
		}
	}
	times := spansOf(ctx, all)
	first, middle, last := arranged(all)
	narrow(ctx, last, keep)
	s.applyInOrder(ctx, &d, nil, first, keep)
	s.applyInOrder(ctx, &d, all, middle, keep)
	exposed(ctx, all, last)
	s.applyInOrder(ctx, &d, all, last, keep)
	times.setTimes(ctx, all)
	failed := d.sync(ctx, hostRoot{host: s.host})
	out := make([]effect.Result, 0, len(all))
	for _, t := range all {
		if t.err == nil && failed[t.swap.root] != nil {
			t.res.Outcome = effect.Failed
			t.res.Why = fmt.Sprintf("%s is as it was, but this may not outlive a crash of the machine: %v", t.swap.target, failed[t.swap.root])
		}
		out = append(out, t.res)
	}
	return out
}

// applyInOrder performs the steps of one place in the order of change sets, after the
// earlier steps are durable.
func (s scheme) applyInOrder(ctx context.Context, d *pendingSyncs, before, steps []*planStep, keep journal.ContentStore) {
	if len(steps) == 0 {
		return
	}
	failed := d.sync(ctx, hostRoot{host: s.host})
	for _, t := range steps {
		if t.swap != nil && t.err == nil {
			t.err = failed[t.swap.root]
		}
	}
	for at := 0; at < len(steps); {
		next := steps[at:]
		next = next[:wave(len(next), func(i int) (*swap, bool) { return next[i].swap, next[i].makesDir() })]
		barred(ctx, before, next)
		barred(ctx, steps[:at], next)
		next = ahead(ctx, next, keep)
		for _, t := range next {
			t.run(ctx)
		}
		at += len(next)
	}
}

// arranged sorts steps by their place. In the last place, deeper folders come
// first.
func arranged(all []*planStep) (first, middle, last []*planStep) {
	for _, t := range all {
		switch {
		case t.swap == nil || t.swap.hold.place() == placeMiddle:
			middle = append(middle, t)
		case t.swap.hold.place() == placeFirst:
			first = append(first, t)
		default:
			last = append(last, t)
		}
	}
	slices.SortStableFunc(last, func(a, b *planStep) int {
		return strings.Count(b.swap.target, "/") - strings.Count(a.swap.target, "/")
	})
	return first, middle, last
}

// narrow sets the held version of folders that are opened again after the
// entries below them, parents first.
func narrow(ctx context.Context, last []*planStep, keep journal.ContentStore) {
	for _, t := range slices.Backward(last) {
		if !t.swap.hold.between() {
			continue
		}
		if t.begin(ctx, keep); t.err == nil {
			t.err = t.swap.narrow(ctx)
		}
	}
}

// exposed skips folders that would give others access to content that could not
// be restored.
func exposed(ctx context.Context, all, last []*planStep) {
	for _, t := range last {
		for _, u := range all {
			if t.err != nil || u.err == nil || u.swap == nil || u.swap.root != t.swap.root || !strings.HasPrefix(u.swap.target, t.swap.target+"/") {
				continue
			}
			now, err := u.swap.look(ctx, u.swap.target, hashing)
			if err != nil || u.inv.Will.exposes(now.Version, u.swap.root.Self().Owner) {
				t.err = conflict(t.swap.target, stillBelow(u.swap.target))
			}
		}
	}
}

// barred skips steps below a directory that could not be restored, if another
// directory is there now that may let others in.
func barred(ctx context.Context, done, next []*planStep) {
	for _, d := range done {
		if d.err == nil || d.swap == nil || !d.makesDir() {
			continue
		}
		if now, err := d.swap.look(ctx, d.swap.target, hashing); err == nil && !d.inv.Will.letsIn(now.Version) {
			continue
		}
		for _, t := range next {
			if t.err == nil && t.inv.Will != nil && t.swap.root == d.swap.root && strings.HasPrefix(t.swap.target, d.swap.target+"/") {
				t.err = conflict(t.swap.target, otherFolder(d.swap.target))
			}
		}
	}
}

func (s scheme) newPlanStep(step effect.Step) *planStep {
	t := &planStep{step: step}
	t.swap, t.inv, t.err = s.swap(step.Change)
	return t
}

func (t *planStep) makesDir() bool { return t.inv.Will != nil && t.inv.Will.Type == typeDir }

// begin checks whether the planned version is still there, and finds what
// restores the version before the call. The exchange finds a change by another
// process too, but only after others could see the restored version.
func (t *planStep) begin(ctx context.Context, keep journal.ContentStore) {
	if t.err != nil {
		return
	}
	w := t.swap
	defer w.pinFolder()()
	if t.err = w.straight(ctx, w.target); t.err != nil {
		return
	}
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		t.err = err
		return
	}
	//mutant:token
	if !now.Token().Same(w.expected()) {
		t.err = conflict(w.target, "it changed after the revert was planned; revert the call again")
		return
	}
	if t.img, t.err = t.inv.Will.image(ctx, keep); t.err != nil {
		return
	}
	if parent, err := w.lstat(ctx, parentOf(w.target)); err != nil || parent.Type != disk.TypeDir {
		t.err = fmt.Errorf("%s: its folder does not exist; create it, then revert the call again", w.target)
	}
}

// ahead begins the steps of a wave and makes their drafts. If there are many,
// one sync covers them. It returns the steps that can be performed now. If the
// drafts exceed the space limit, the rest forms another wave.
func ahead(ctx context.Context, steps []*planStep, keep journal.ContentStore) []*planStep {
	many := map[disk.Root]int{}
	for _, t := range steps {
		if t.drafts() {
			many[t.swap.root]++
		}
	}
	var waiting []*planStep
	made, n := int64(0), 0
	for ; n < len(steps) && made < maxDraftBytes; n++ {
		t := steps[n]
		t.begin(ctx, keep)
		if t.err != nil || !t.drafts() || many[t.swap.root] < groupSyncMin || !t.swap.root.Features().SyncAll {
			continue
		}
		t.swap.ahead = true
		if t.err = t.swap.prepare(ctx, t.img); t.err == nil {
			waiting = append(waiting, t)
			made += t.swap.ours.info.Size
		}
	}
	synced := map[disk.Root]error{}
	for _, t := range waiting {
		err, done := synced[t.swap.root]
		if !done {
			err = t.swap.syncAll(ctx)
			synced[t.swap.root] = err
		}
		t.err, t.swap.ready = err, err == nil
	}
	return steps[:n]
}

// drafts reports whether the step restores content that can be synced together
// with that of others.
func (t *planStep) drafts() bool {
	return t.err == nil && t.inv.Will != nil && t.inv.Will.Type == typeFile && len(t.inv.Will.HardLink) == 0
}

// run performs the step. If it fails, run settles what it left before the next
// step can find it.
func (t *planStep) run(ctx context.Context) {
	if t.err == nil {
		t.err = t.swap.run(ctx, t.img)
	}
	t.res = t.result(ctx)
}

// result returns the result of the step.
func (t *planStep) result(ctx context.Context) effect.Result {
	res := effect.Result{Resource: t.step.Change.Resource, Outcome: effect.Restored, Now: t.step.Change.Post}
	if t.err == nil {
		if res.Outcome, res.Why = t.linked(ctx); t.step.Plan == effect.Merged && res.Outcome == effect.Restored {
			res.Outcome, res.Why = effect.Merged, t.step.Why
		}
		return res
	}
	res.Outcome, res.Now, res.Why = effect.Failed, "", t.err.Error()
	w := t.swap
	if w == nil {
		return res
	}
	if errors.Is(t.err, ErrConflict) || elsewhere(t.err) {
		res.Outcome = effect.Conflict
	} else if err := w.settle(ctx); err != nil {
		res.Why = errors.Join(t.err, err).Error()
		return res
	}
	if now, err := w.look(ctx, w.target, hashing); err == nil {
		res.Now = now.Token()
	}
	return res
}
