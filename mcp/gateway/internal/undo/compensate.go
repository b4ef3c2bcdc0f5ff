package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// The keys of the notes that a call records for its revert.
const (
	NoteBefore = "before" // the response of the server before the call
	noteBack   = "way_back"
)

// compensation is the call that reverts another call, as data: later edits of
// the configuration do not affect it.
type compensation struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
	Why  string          `json:"why,omitempty"` // why there is none
}

// Before calls the entry's readBefore tool, if the entry has one.
func (m Tool) Before(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (map[string]canon.Value, error) {
	input, err := canon.Parse(in, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	parts := map[string]canon.Value{"input": input}
	b := m.Entry.ReadBefore
	if b == nil {
		return parts, nil
	}
	args, err := binding.FillTemplate(b.Args, parts)
	if err != nil {
		return nil, fmt.Errorf("what is there before the call cannot be asked: %w", err)
	}
	a, err := m.Upstream.CallReadOnly(ctx, b.Tool, args)
	if err != nil {
		return nil, fmt.Errorf("what is there before the call cannot be asked: %w", err)
	}
	if parts["before"], err = canon.Parse(a.Object, canon.DefaultLimits()); err != nil {
		return nil, err
	}
	return parts, tc.Note(ctx, NoteBefore, a.Object)
}

// NoteCompensation records the compensation of a call.
func (m Tool) NoteCompensation(ctx context.Context, tc ctxperm.ToolContext, parts map[string]canon.Value, a wire.Result) (err error) {
	c := m.Entry.Compensate
	back := compensation{Tool: c.Tool}
	if parts["output"], err = canon.Parse(a.Object, canon.DefaultLimits()); err != nil {
		return err
	}
	if back.Args, err = binding.FillTemplate(c.Args, parts); err != nil {
		back.Why = "its arguments are not in what the call was given and answered: " + err.Error()
	}
	return tc.Note(ctx, noteBack, back)
}

// Revert reverts a call by another call of the same server.
func (m Tool) Revert(ctx context.Context, rc tool.RevertContext) error {
	back, err := m.compensation(rc)
	if err != nil {
		return err
	}
	s, err := m.Upstream.Session(ctx)
	if err != nil {
		return err
	}
	if err := m.Upstream.CheckAccepted(s, back.Tool); err != nil {
		return fmt.Errorf("the call cannot be reverted: %w", err)
	}
	repeatable := m.Entry.Compensate != nil && m.Entry.Compensate.Repeatable
	if !repeatable {
		done, err := m.Attempts.begin(rc.RevertKey)
		if err != nil || done {
			return err
		}
	}
	a, err := m.Upstream.Call(ctx, s, back.Tool, back.Args, upstream.Facts{Meta: map[string]any{"remit.dev/revert-key": rc.RevertKey}})
	switch {
	case upstream.UnreadError(err) != nil && !repeatable: // the server rejected it unread
		return errors.Join(err, m.Attempts.drop(rc.RevertKey))
	case err != nil && !repeatable:
		return fmt.Errorf("%w: %w", revert.ErrRevertUnknown, err)
	case err != nil:
		return err
	case a.Failed:
		return fmt.Errorf("server %s says that %s failed: %s", m.Upstream.Server.Name, back.Tool, canon.Printable(a.Text, 1<<10))
	case repeatable:
		return nil
	}
	return m.Attempts.end(rc.RevertKey)
}

// compensation returns the compensation that the call recorded. For a call that was
// interrupted before, it computes the compensation from the input.
func (m Tool) compensation(rc tool.RevertContext) (compensation, error) {
	var back compensation
	if noted := rc.Notes[noteBack]; noted != nil {
		if err := canon.Decode(noted, &back); err != nil {
			return back, err
		}
		if back.Why != "" {
			return back, errors.New(back.Why)
		}
		return back, nil
	}
	parts := map[string]canon.Value{}
	for name, text := range map[string]json.RawMessage{"input": rc.Input, "output": rc.Output, "before": rc.Notes[NoteBefore]} {
		if v, err := canon.Parse(text, canon.DefaultLimits()); err == nil && v.Kind() != canon.Null {
			parts[name] = v
		}
	}
	args, err := binding.FillTemplate(m.Entry.Compensate.Args, parts)
	if err != nil {
		return back, fmt.Errorf("the answer of the call is lost, and with it how to revert it: %w", err)
	}
	return compensation{Tool: m.Entry.Compensate.Tool, Args: args}, nil
}
