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
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// run is one call of a composed tool.
type run struct {
	node *node
	tc   ctxperm.ToolContext
	live *callstate.Call
	in   json.RawMessage
}

// partResult is how a part came out.
type partResult struct {
	at       int
	tool     tool.Tool // zero: it did not begin
	class    effect.Class
	result   tool.Result
	err      error
	harmless bool // it went wrong, and has no effect but through handles
	piece    *callstate.Call
}

// partRecord is what is noted of a part: before it runs, so that a crash tells what was begun, and
// when it has ended.
type partRecord struct {
	State   string          `json:"state"`           // begun, done; none: it had no effect but through handles
	Input   json.RawMessage `json:"input,omitempty"` // of one whose input is not the call's own
	Output  json.RawMessage `json:"output,omitempty"`
	Changes []int           `json:"changes,omitempty"` // numbers of what it did through handles
	Hidden  bool            `json:"hidden,omitempty"`  // the policy keeps payloads of the call out of the journal
}

func noteKey(i int) string { return "=" + strconv.Itoa(i) }

func partKey(key string, i int) string {
	return string(canon.Sum("remit/part-key/v1", []byte(key), []byte(strconv.Itoa(i))))
}

// piece is the call as a part sees it.
func (n *node) piece(live *callstate.Call, i int, key string, class effect.Class) (*callstate.Call, error) {
	t := n.parts[i].Tool
	within, err := perm.NewSet(t.RequiredAccesses()...)
	if err != nil {
		return nil, err
	}
	return live.Piece(callstate.Part{Name: strconv.Itoa(i), Tool: t.Name(), Key: key, Class: class, Within: within}), nil
}

// part runs one part: what it asks for is decided first, exactly, as of a call of its own.
func (r *run) part(ctx context.Context, i int, from json.RawMessage) partResult {
	t := r.node.parts[i].Tool
	e := partResult{at: i, harmless: true}
	raw, err := r.node.input(i, r.in, from)
	var in json.RawMessage
	var ask []perm.ResourceAccess
	if err == nil {
		in, ask, e.class, err = admit(t, raw)
	}
	if err == nil {
		err = r.mayRun(t, e.class, ask[0])
	}
	if err == nil {
		e.piece, err = r.node.piece(r.live, i, partKey(r.live.Config().Key, i), e.class)
	}
	if err != nil {
		e.err = r.says(i, err)
		return e
	}
	ptc := contexts.New(e.piece)
	permit, err := ctxperm.Authorize(ctx, ptc, ask...)
	permit.End()
	if err != nil {
		e.err = r.says(i, err)
		return e
	}
	record := partRecord{State: "begun", Hidden: r.hides()}
	if !r.node.own(i) && !record.Hidden {
		record.Input = in
	}
	if err := r.note(ctx, i, record); err != nil {
		e.err = r.says(i, err)
		return e
	}
	e.tool = t
	r.enter(ctx, &e, ptc, in, record)
	return e
}

// mayRun returns an error for a part that the session does not see. It also
// rejects an effect class worse than the one that the policy decided about. A
// computed condition or class can differ the second time.
func (r *run) mayRun(t tool.Tool, class effect.Class, first perm.ResourceAccess) error {
	of := r.live.Config()
	seen := of.Client
	seen.Selected = nil // it was selected with what it is a part of
	if why := t.HiddenReason(seen); why != "" {
		return &callstate.DeniedError{Access: first, Stage: "grant", Why: "the session does not see the tool: " + why}
	}
	if worst(effect.Classes(), of.Class, class) != of.Class {
		return fmt.Errorf("its effect is %s, and the call was decided about as %s", class, of.Class)
	}
	return nil
}

// enter runs the code and notes what came of it.
func (r *run) enter(ctx context.Context, e *partResult, ptc ctxperm.ToolContext, in json.RawMessage, record partRecord) {
	mark := e.piece.Mark()
	var err error
	e.result, err = execute(ctx, e.tool, ptc, in)
	record.Changes = e.piece.Own(mark)
	switch {
	case err == nil:
		record.State = "done"
		if !record.Hidden {
			record.Output = e.result.Output()
		}
	case hadNoEffect(e.tool, e.class, err):
		record.State = "none"
	default:
		e.harmless = false
	}
	if record.State != "begun" {
		if noted := r.note(context.WithoutCancel(ctx), e.at, record); noted != nil {
			err = errors.Join(err, noted)
		}
	}
	if err != nil {
		e.err = r.says(e.at, err)
	}
}

// note writes down what the undo or the verifier of a part will need. A part that has
// neither, and acts only through handles or not at all, needs nothing.
func (r *run) note(ctx context.Context, i int, record partRecord) error {
	if !storesNote(r.node.parts[i].Tool) {
		return nil
	}
	return r.tc.Note(ctx, noteKey(i), record)
}

func storesNote(t tool.Tool) bool {
	s := t.Spec()
	return s.Verify != nil || s.Revert != nil || !hadNoEffect(t, t.Class(), nil)
}

func (r *run) hides() bool {
	hides := r.live.Config().HasRedactions
	return hides != nil && hides()
}

func (r *run) says(i int, err error) error {
	return fmt.Errorf("part %d, %s: %w", i+1, r.node.parts[i].Tool.Name(), err)
}

// own reports whether a part gets the call's input as it is.
func (n *node) own(i int) bool {
	return n.parts[i].Input == nil && n.parts[i].With == nil && (n.kind != "chain" || i == 0)
}

// end returns the error of a call with a failed part, or nil. The error says
// what is known about the effects of all parts.
func (r *run) end(all []partResult) error {
	i := slices.IndexFunc(all, func(e partResult) bool { return e.err != nil })
	if i < 0 {
		return nil
	}
	out := &callstate.ComposedError{Err: all[i].err, Nothing: true, Back: true}
	for _, e := range all {
		nothing := e.harmless
		back := e.harmless || revertKnown(e.err)
		if e.err == nil { // it is done
			nothing = hadNoEffect(e.tool, e.class, nil)
			back = nothing || e.tool.Spec().Revert != nil
		}
		out.Nothing, out.Back = out.Nothing && nothing, out.Back && back
	}
	return out
}

// revertKnown reports whether a composed part says that its Revert reverts all of it.
func revertKnown(err error) bool {
	var inner *callstate.ComposedError
	return errors.As(err, &inner) && inner.Back
}
