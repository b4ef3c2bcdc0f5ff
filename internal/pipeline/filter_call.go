package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// hook identifies the hook that receives a filterCall.
type hook uint8

const (
	hookBefore hook = iota + 1
	hookAfter
	hookEnded
)

// filterCall implements filter.Call.
type filterCall struct {
	p    *permitted
	run  *filterRun
	hook hook

	answer   *tool.Result
	input    any
	replaces bool
	values   context.Context //nolint:containedctx // handed over by SetContext, and taken from here when the hook has returned
}

func (f *filterCall) ID() string { return f.p.id }

func (f *filterCall) Txn() string { return f.run.line.p.Recorder.Txn() }

func (f *filterCall) Session() string { return f.run.line.p.Recorder.Session() }

func (f *filterCall) Tool() tool.Tool { return f.p.tool }

func (f *filterCall) Class() effect.Class { return f.p.class }

func (f *filterCall) Accesses() []perm.ResourceAccess { return slices.Clone(f.p.exact) }

func (f *filterCall) Input() json.RawMessage { return slices.Clone(f.p.input) }

func (f *filterCall) RedactedInput() json.RawMessage { return slices.Clone(f.p.redaction.shownInput()) }

func (f *filterCall) Decision() perm.DecisionRecord {
	if f.p.released != nil {
		if d := decisionRecord(f.p.released.Decision); d != nil {
			return *d
		}
	}
	if f.run.refused != nil {
		return f.p.redaction.record(decided(f.run.refused))
	}
	return f.p.redaction.decision(f.p.decision)
}

func (f *filterCall) Principal() perm.Principal { return f.run.line.p.Principal.Clone() }

func (f *filterCall) Labels() []string {
	labels, _ := f.run.line.p.Facts.Labels()
	return slices.Clone(labels)
}

func (f *filterCall) Turn() int { return f.run.turn }

func (f *filterCall) BatchPosition() (index, count int) {
	return f.p.batch.Index, max(f.p.batch.Count, 1)
}

func (f *filterCall) Released() bool { return f.p.released != nil }

func (f *filterCall) Resumed() bool { return f.p.resume != nil }

func (f *filterCall) Now() time.Time { return f.run.line.p.Host.Now() }

func (f *filterCall) Properties() *sync.Map { return &f.run.properties }

func (f *filterCall) SessionProperties() *sync.Map { return f.run.line.properties() }

func (f *filterCall) Answer(r tool.Result) { f.answer = &r }

func (f *filterCall) Replace(input any) { f.input, f.replaces = input, true }

func (f *filterCall) EndLoop(why string) {
	if f.hook != hookEnded {
		f.run.endLoop(why)
	}
}

func (f *filterCall) SetContext(ctx context.Context) { f.values = ctx }

func (f *filterCall) AddRedaction(hide func(text string) string) {
	if f.hook == hookBefore && hide != nil {
		f.p.redaction.hide(hide)
	}
}

// reaction returns an error if Before requests something that it cannot have.
func (f *filterCall) reaction() error {
	if f.answer != nil && f.replaces {
		return errors.New("it both answered and replaced the input: one of them can count")
	}
	return nil
}

// filterBatch implements filter.Batch.
type filterBatch struct {
	line  *Pipeline
	calls []tool.Request
}

func (b *filterBatch) Calls() []tool.Request { return slices.Clone(b.calls) }

func (b *filterBatch) Txn() string { return b.line.p.Recorder.Txn() }

func (b *filterBatch) Session() string { return b.line.p.Recorder.Session() }

func (b *filterBatch) Principal() perm.Principal { return b.line.p.Principal.Clone() }

func (b *filterBatch) Turn() int { return b.calls[0].Turn }

func (b *filterBatch) Now() time.Time { return b.line.p.Host.Now() }

func (b *filterBatch) SessionProperties() *sync.Map { return b.line.properties() }

func (l *Pipeline) properties() *sync.Map {
	if l.p.Properties == nil {
		return new(sync.Map)
	}
	return l.p.Properties
}
