package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// recordedPart reads the notes of a part. ok is false for a part that did not begin or
// has no notes.
func recordedPart(notes map[string]json.RawMessage, i int) (r partRecord, ok bool, err error) {
	raw, ok := notes[noteKey(i)]
	if !ok {
		return r, false, nil
	}
	err = canon.Decode(raw, &r)
	return r, true, err
}

// revert is the Revert of the composed tool: those of the parts, last one first, each with
// what was recorded of it. One that fails does not keep the others from being undone.
func (n *node) revert(ctx context.Context, rc tool.RevertContext) error {
	var errs []error
	for i := len(n.parts) - 1; i >= 0; i-- {
		r, ok, err := recordedPart(rc.Notes, i)
		if err == nil && (!ok || r.State == "none") {
			continue
		}
		if err == nil {
			err = n.revertPart(ctx, rc, i, r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("part %d, %s: %w", i+1, n.parts[i].Tool.Name(), err))
		}
	}
	return errors.Join(errs...)
}

func (n *node) revertPart(ctx context.Context, rc tool.RevertContext, i int, r partRecord) (err error) {
	t := n.parts[i].Tool
	back := t.Spec().Revert
	switch {
	case back == nil && hadNoEffect(t, t.Class(), nil):
		return nil
	case back == nil:
		return fmt.Errorf("a %s part without a way back", t.Class())
	case r.Hidden:
		return errors.New("the policy kept out of the journal what its way back needs")
	}
	live := contexts.Call(rc.ToolContext())
	if live == nil {
		return ctxperm.ErrClosed
	}
	inner := tool.RevertContext{
		Input: r.Input, Output: r.Output, ExecutedAt: rc.ExecutedAt, Notes: callstate.NotesOf(rc.Notes, strconv.Itoa(i)+"/"),
		Key: partKey(rc.Key, i), RevertKey: partKey(rc.RevertKey, i),
	}
	if n.own(i) {
		if inner.Input, _, _, err = admit(t, rc.Input); err != nil {
			return err
		}
	}
	if inner.Output == nil {
		inner.Output = json.RawMessage("null")
	}
	for _, c := range rc.Changes {
		if slices.Contains(r.Changes, c.N) {
			inner.Changes = append(inner.Changes, c)
		}
	}
	piece, err := n.piece(live, i, inner.RevertKey, t.Class())
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: its Revert panicked (%T)", revert.ErrRevertUnknown, p)
		}
	}()
	return back(ctx, internals.WithToolContext(inner, contexts.New(piece)))
}

// look is the Verify of the composed tool: each part that ran is asked about its own input
// and output.
func (n *node) look(ctx context.Context, s verify.Subject) verify.Verdict {
	var seen []verify.Verdict
	whole := true // as far as the notes tell, all that was to run has
	for i, p := range n.parts {
		if !storesNote(p.Tool) {
			whole = whole && p.Tool.Class() == effect.Pure
			continue
		}
		r, ok, err := recordedPart(s.Notes, i)
		switch {
		case err != nil:
			seen = append(seen, verify.CannotTell(err.Error()))
		case !ok && (n.kind == "chain" || n.kind == "parallel"):
			whole = false
		case !ok, r.State == "none":
		default:
			whole = whole && r.State == "done"
			if v, asked := n.lookAt(ctx, s, i, r); asked {
				seen = append(seen, v)
			}
		}
	}
	return together(s, seen, whole)
}

// lookAt asks one part.
func (n *node) lookAt(ctx context.Context, s verify.Subject, i int, r partRecord) (v verify.Verdict, asked bool) {
	t := n.parts[i].Tool
	name := fmt.Sprintf("part %d, %s: ", i+1, t.Name())
	look := t.Spec().Verify
	switch {
	case look == nil && s.Phase != verify.Recovery:
		return v, false
	case look == nil:
		return verify.CannotTell(name + "it has no Verify"), true
	case r.Hidden:
		return verify.CannotTell(name + "the policy kept out of the journal what its Verify would look at"), true
	}
	inner := verify.Subject{Phase: s.Phase, Input: r.Input, Output: r.Output, Changes: s.Changes, Notes: callstate.NotesOf(s.Notes, strconv.Itoa(i)+"/"), Resources: s.Resources}
	if n.own(i) {
		in, _, _, err := admit(t, s.Input)
		if err != nil {
			return verify.CannotTell(name + err.Error()), true
		}
		inner.Input = in
	}
	if r.State == "done" {
		inner.Changes = nil
		for _, c := range r.Changes {
			if c <= len(s.Changes) {
				inner.Changes = append(inner.Changes, s.Changes[c-1])
			}
		}
	}
	v = look(ctx, inner)
	findings := v.Findings()
	for j := range findings {
		findings[j] = name + findings[j]
	}
	switch v.Presence() {
	case effect.PresenceApplied:
		return verify.Applied(findings...), true
	case effect.PresencePartial:
		return verify.Partial(findings...), true
	case effect.PresenceAbsent:
		return verify.Absent(findings...), true
	case effect.PresenceUnknown:
	}
	return verify.CannotTell(findings...), true
}

// together is what the looks at parts say of the whole. What was done through handles is a
// part of the effect, too.
func together(s verify.Subject, seen []verify.Verdict, whole bool) verify.Verdict {
	phase := s.Phase
	var findings []string
	count := map[effect.Presence]int{}
	for _, v := range seen {
		count[v.Presence()]++
		findings = append(findings, v.Findings()...)
	}
	switch {
	case phase == verify.AfterRevert && count[effect.PresenceApplied]+count[effect.PresencePartial] > 0:
		return verify.Partial(findings...)
	case count[effect.PresenceUnknown] > 0:
		return verify.CannotTell(findings...)
	case phase == verify.AfterCall && count[effect.PresenceApplied] == len(seen):
		return verify.Applied(findings...)
	case count[effect.PresenceAbsent] == len(seen) && (phase == verify.AfterRevert || len(s.Changes) == 0):
		return verify.Absent(findings...)
	case count[effect.PresenceApplied] == len(seen) && whole:
		return verify.Applied(findings...)
	default:
		return verify.Partial(findings...)
	}
}
