package files

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// stride is one planned step while it is being done.
type stride struct {
	step effect.Step
	inv  inverse
	swap *swap // nil: there is no way to it
	img  image
	err  error
	res  effect.Result
}

// Apply does one planned step, exactly like a first change is done: exchange,
// look at what was displaced, and exchange back if it is not what was planned on.
func (s scheme) Apply(ctx context.Context, step effect.Step, keep journal.Keeper) effect.Result {
	one := []*stride{s.stride(step)}
	times := spansOf(ctx, one)
	one[0].begin(ctx, keep)
	one[0].run(ctx)
	times.pay(ctx, one)
	return one[0].res
}

// ApplyAll does planned steps in their order, each as Apply does it. The order of durable
// writes is that of the calls of this package (see performAll), and so is what a death
// leaves:
//
//	wave by wave, none of which makes the directory of another of its steps:
//	  look at each; prepare the new files under their draft names => sync them at once
//	  exchange each, look at what was displaced, exchange back or remove it
//	set the times of folders => sync them, after the last wave
//
// Until then each step can be told from its counter-change, which the journal holds.
func (s scheme) ApplyAll(ctx context.Context, steps []effect.Step, keep journal.Keeper) []effect.Result {
	if len(steps) == 1 {
		return []effect.Result{s.Apply(ctx, steps[0], keep)}
	}
	all, d := make([]*stride, len(steps)), debts{}
	for i, step := range steps {
		all[i] = s.stride(step)
		if all[i].swap != nil {
			d.lend(all[i].swap)
		}
	}
	times := spansOf(ctx, all)
	for at := 0; at < len(all); {
		next := all[at:]
		next = next[:wave(len(next), func(i int) (*swap, bool) { return next[i].swap, next[i].makesDir() })]
		barred(ctx, all[:at], next)
		next = ahead(ctx, next, keep)
		for _, t := range next {
			t.run(ctx)
		}
		at += len(next)
	}
	times.pay(ctx, all)
	failed := d.pay(ctx, site{host: s.host})
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

// barred leaves steps alone below directories that could not come back, if another one is
// there by now that may let others in.
func barred(ctx context.Context, done, next []*stride) {
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

func (s scheme) stride(step effect.Step) *stride {
	t := &stride{step: step}
	t.swap, t.inv, t.err = s.swap(step.Change)
	return t
}

func (t *stride) makesDir() bool { return t.inv.Will != nil && t.inv.Will.Type == typeDir }

// begin looks whether there is still what was planned on, and finds what it takes to
// bring back what was there before.
func (t *stride) begin(ctx context.Context, keep journal.Keeper) {
	if t.err != nil {
		return
	}
	w := t.swap
	if t.err = w.straight(ctx, w.target); t.err != nil {
		return
	}
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		t.err = err
		return
	}
	//mutant:token
	if !now.Token().Same(w.pre) {
		t.err = conflict(w.target, "it was changed after the undo was planned; take the call back again to see it")
		return
	}
	if t.img, t.err = t.inv.Will.image(ctx, keep); t.err != nil {
		return
	}
	if parent, err := w.lstat(ctx, parentOf(w.target)); err != nil || parent.Type != disk.TypeDir {
		t.err = fmt.Errorf("%s: its folder is not there; make it, then take the call back again", w.target)
	}
}

// ahead begins the steps of a wave, makes their drafts, and syncs those at once where they
// are many. It returns the steps that can be done now: where there is no room for all
// drafts, the rest is another wave.
func ahead(ctx context.Context, steps []*stride, keep journal.Keeper) []*stride {
	many := map[disk.Root]int{}
	for _, t := range steps {
		if t.drafts() {
			many[t.swap.root]++
		}
	}
	var waiting []*stride
	made, n := int64(0), 0
	for ; n < len(steps) && made < room; n++ {
		t := steps[n]
		t.begin(ctx, keep)
		if t.err != nil || !t.drafts() || many[t.swap.root] < together || !t.swap.root.Features().SyncAll {
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

// drafts reports whether the step brings content back that can be synced with that of
// others.
func (t *stride) drafts() bool {
	return t.err == nil && t.inv.Will != nil && t.inv.Will.Type == typeFile && len(t.inv.Will.Twin) == 0
}

// run does the step, and puts in order what it left where that went wrong, before the
// next one finds it.
func (t *stride) run(ctx context.Context) {
	if t.err == nil {
		t.err = t.swap.run(ctx, t.img)
	}
	t.res = t.result(ctx)
}

// result says what became of the step.
func (t *stride) result(ctx context.Context) effect.Result {
	res := effect.Result{Resource: t.step.Change.Resource, Outcome: effect.Restored, Now: t.step.Change.Post}
	if t.err == nil {
		res.Outcome, res.Why = t.linked(ctx)
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
