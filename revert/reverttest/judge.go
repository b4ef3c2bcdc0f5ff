package reverttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// snapshot is the content of an environment, by name.
type snapshot struct {
	is     map[string]string
	exact  map[string]string // with values that change by themselves, and must be restored too
	traces map[string]string
}

func (r *run) look() (*snapshot, error) {
	s := &snapshot{is: map[string]string{}, exact: map[string]string{}}
	r.disk.into(s)
	if r.env.Snapshot != nil {
		more, err := r.env.Snapshot()
		if err != nil {
			return s, fmt.Errorf("snapshot: %w", err)
		}
		maps.Copy(s.is, more)
		maps.Copy(s.exact, more)
	}
	var err error
	if r.env.Traces != nil {
		s.traces, err = r.env.Traces()
	}
	return s, err
}

// differ returns the names whose values differ.
func differ(a, b map[string]string) (names []string) {
	for _, name := range sorted(a) {
		if is, ok := b[name]; !ok || is != a[name] {
			names = append(names, name)
		}
	}
	for _, name := range sorted(b) {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// differences describes the differences.
func differences(want, got map[string]string) string {
	var all []string
	for _, name := range differ(want, got) {
		all = append(all, fmt.Sprintf("%s was %s and is %s", name, orAbsent(want, name), orAbsent(got, name)))
	}
	if len(all) > 4 {
		all = append(all[:4], fmt.Sprintf("and %d more", len(all)-4))
	}
	return strings.Join(all, "; ")
}

func orAbsent(m map[string]string, name string) string {
	is, ok := m[name]
	if !ok {
		return "absent"
	}
	if len(is) > 120 {
		is = is[:120] + "…"
	}
	return is
}

// checkJournal compares the environment with the journal before the call is
// reverted. A done call is present, once and complete, and a failed call has
// left nothing.
func (r *run) checkJournal(ctx context.Context, rt *agent.Runtime) {
	if r.c.before == nil || len(r.aside) > 0 || r.txn == "" {
		return
	}
	now, err := r.look()
	if err != nil {
		r.violation("%v", err)
		return
	}
	txn, err := revert.Load(ctx, rt.Journal(), r.txn)
	switch {
	case errors.Is(err, journal.ErrNotFound), err == nil && len(txn.Calls) == 0:
		if len(differ(r.c.before.is, now.is)) > 0 {
			r.violation("nothing is recorded of the call, and %s", differences(r.c.before.is, now.is))
		}
	case err != nil:
		if p := r.latest(); !p.ended() {
			r.violation("the journal cannot be read: %v", err)
		}
	default:
		r.phase(txn.Calls[0], now)
	}
}

func (r *run) phase(c *revert.Call, now *snapshot) {
	if v, ok := c.Verdict().Get(); ok && v.Presence != effect.PresenceApplied || c.Reversal != nil {
		return // half of it is present, and reported, or it is being reverted
	}
	switch {
	case c.Phase == revert.PhaseDone:
		if r.c.steady && len(differ(r.c.after.is, now.is)) > 0 {
			r.violation("the call is recorded as done, and is not there once and whole: %s", differences(r.c.after.is, now.is))
		}
		if len(differ(r.c.before.is, r.c.after.is)) > 0 && len(differ(r.c.before.is, now.is)) == 0 {
			r.violation("the call is recorded as done, and nothing of it is there")
		}
	case c.Phase == revert.PhaseFailed && !c.HasEffects():
		if len(differ(r.c.before.is, now.is)) > 0 {
			r.violation("the call is recorded as without effect, and %s", differences(r.c.before.is, now.is))
		}
	default: // no claim to check
	}
}

// judgeEnd compares the environment with the last report.
func (r *run) judgeEnd(when string) {
	now, err := r.look()
	if err != nil {
		r.violation("%v", err)
		return
	}
	for _, name := range sorted(r.theirs) {
		if now.is[name] != r.theirs[name] {
			r.violation("%s%s was left by somebody else as %s, and is %s", when, name, orAbsent(r.theirs, name), orAbsent(now.is, name))
		}
	}
	if r.c.before == nil || !r.claims() {
		return
	}
	exact := len(r.aside) == 0
	for _, name := range differ(r.c.before.exact, now.exact) {
		changed := r.c.after == nil || slices.Contains(differ(r.c.before.exact, r.c.after.exact), name)
		_, theirs := r.theirs[name]
		theirs = theirs || r.gone[name]
		if exact || theirs && changed && !r.aside[name] || !theirs {
			r.violation("%severything is said to be reverted, and %s", when, differences(pick(r.c.before.exact, name), pick(now.exact, name)))
			return
		}
	}
}

func pick(m map[string]string, name string) map[string]string {
	if is, ok := m[name]; ok {
		return map[string]string{name: is}
	}
	return nil
}

// claims reports whether a caller was told that nothing of the call remains.
func (r *run) claims() bool {
	return r.report == nil && r.txn == "" || r.report == nil && r.outcome.Status == "" || r.report != nil && r.report.Complete()
}

// redoAndRevert redoes the call and reverts it again.
func (r *run) redoAndRevert(ctx context.Context, rt *agent.Runtime) {
	rep, err := rt.Redo(ctx, r.txn, "grader")
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		r.violation("redo failed: %v", err)
		return
	}
	r.tracef("it is redone: %s%s", rep.State, items(rep))
	now, err := r.look()
	if err != nil {
		r.violation("%v", err)
		return
	}
	if rep.Complete() && len(rep.Items) > 0 && r.c.steady && len(differ(r.c.after.is, now.is)) > 0 {
		r.violation("it is said to be redone, and %s", differences(r.c.after.is, now.is))
	}
	again, err := rt.Revert(ctx, r.txn, revert.Options{})
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		r.violation("reverting again failed: %v", err)
		return
	}
	r.tracef("it is reverted again: %s%s", again.State, items(again))
	r.report = &again
	r.judgeEnd("after it was redone, ")
}
