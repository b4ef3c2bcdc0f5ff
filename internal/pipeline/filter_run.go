package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// filtered is a permitted call that every filter let through, or that a filter
// answered. intend and hold accept nothing else.
type filtered struct {
	permitted
	answer []byte // canonical form of the result that a filter gave; nil: the tool runs
}

// filterRun is the state of one call on its way through the filters. It belongs
// to the call's goroutine. It is nil in a pipeline without filters.
type filterRun struct {
	line       *Pipeline
	turn       int
	properties sync.Map
	now        permitted // as a filter last saw it

	reached  int // number of filters that were called, in order
	let      int // number of those that let the call through: they see its result
	settled  int // number of filters that saw the input before the call waited
	by       string
	ends     []string
	replaced []record.Replacement
	refused  *callstate.DeniedError // set if the call was denied before a filter saw it
	values   context.Context        //nolint:containedctx // of the last Within
}

// maxEnds bounds the reason to end a loop, in bytes.
const maxEnds = 1 << 10

func (l *Pipeline) newFilterRun(turn int, before []record.Replacement) *filterRun {
	if len(l.p.Filters) == 0 {
		if before == nil {
			return nil
		}
		return &filterRun{line: l, turn: turn, replaced: before}
	}
	ps := &filterRun{line: l, turn: turn, replaced: before}
	if n := len(before); n > 0 {
		ps.settled = 1 + slices.IndexFunc(l.p.Filters, func(f filter.Filter) bool { return f.Name == before[n-1].By })
	}
	return ps
}

func (ps *filterRun) endLoop(why string) {
	if why = canon.Printable(why, maxEnds); why == "" {
		why = "a filter ends it"
	}
	if !slices.Contains(ps.ends, why) {
		ps.ends = append(ps.ends, why)
	}
}

// end returns why the loop must end, or "".
func (ps *filterRun) end() string {
	if ps == nil || len(ps.ends) == 0 {
		return ""
	}
	return canon.Printable(ps.now.redaction.text(strings.Join(ps.ends, "; ")), maxEnds)
}

func (ps *filterRun) replacements() []record.Replacement {
	if ps == nil {
		return nil
	}
	return slices.Clone(ps.replaced)
}

func (ps *filterRun) refuser() string {
	if ps == nil {
		return ""
	}
	return ps.by
}

// within returns ctx with the values that filters passed to SetContext.
func (ps *filterRun) within(ctx context.Context) context.Context {
	if ps == nil || ps.values == nil {
		return ctx
	}
	return mergedContext{Context: ctx, values: ps.values}
}

// mergedContext is a context that also has the values of another one.
type mergedContext struct {
	context.Context                 //nolint:containedctx // it is one
	values          context.Context //nolint:containedctx // only its values
}

// Value looks into the other context first.
func (v mergedContext) Value(key any) any {
	if value := v.values.Value(key); value != nil {
		return value
	}
	return v.Context.Value(key)
}

// panicked converts a panic in a hook to an error.
func panicked(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it panicked (%T)", p)
	}
}

// filter is step 3: it calls the filters, in order. A replaced input goes
// through admit and permit again. Then only the filters after the one that
// replaced it are called, so the loop ends.
func (l *Pipeline) filter(ctx context.Context, p permitted) (filtered, *tool.Outcome) {
	ps := p.pass
	if ps == nil || len(l.p.Filters) == 0 {
		return filtered{permitted: p}, nil
	}
	if p.refusal != nil {
		return filtered{}, l.refusedBy(ctx, p, p.refusal.by, p.refusal.why)
	}
	if err := l.p.Host.Point(ctx, "tool.filter"); err != nil {
		return filtered{}, l.refusedBy(ctx, p, l.p.Filters[0].Name, fmt.Errorf("asking it was interrupted: %w", err))
	}
	for ps.now = p; ps.reached < len(l.p.Filters); ps.let = ps.reached {
		f := l.p.Filters[ps.reached]
		ps.reached++
		seen, err := l.before(ctx, f, p)
		switch {
		case err != nil:
			return filtered{}, l.refusedBy(ctx, p, f.Name, err)
		case seen.answer != nil:
			return l.answeredBy(ctx, p, f.Name, *seen.answer)
		case seen.replaces:
			var end *tool.Outcome
			if p, end = l.replacedBy(ctx, p, f.Name, seen.input); end != nil {
				return filtered{}, end
			}
			ps.now = p
		}
	}
	return filtered{permitted: p}, nil
}

// before calls Before of one filter.
func (l *Pipeline) before(ctx context.Context, f filter.Filter, p permitted) (seen *filterCall, err error) {
	seen = &filterCall{p: &p, run: p.pass, hook: hookBefore}
	if f.Before == nil {
		return seen, nil
	}
	defer panicked(&err)
	if err := f.Before(p.pass.within(ctx), seen); err != nil {
		return seen, err
	}
	if seen.values != nil {
		p.pass.values = seen.values
	}
	return seen, seen.reaction()
}

// refusedBy ends a call that a filter refused before the call started.
func (l *Pipeline) refusedBy(ctx context.Context, p permitted, by string, why error) *tool.Outcome {
	p.pass.by = by
	text := "filter " + by + ": " + canon.Printable(why.Error(), maxWhy)
	if p.released != nil {
		return l.unreleased(ctx, p, "filter", errors.New(text))
	}
	d := perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: text, Set: "filter"}}, Revision: p.decision.Revision()})
	return textWithout(l.denied(ctx, p, &callstate.DeniedError{Access: p.asked()[0], Stage: "filter", Decision: d, Why: text}), p.input)
}

// answeredBy accepts the result that a filter gave in the tool's place. The
// call then has no effect, and its class is pure.
func (l *Pipeline) answeredBy(ctx context.Context, p permitted, by string, r tool.Result) (filtered, *tool.Outcome) {
	output, err := l.encode(r)
	if err == nil {
		err = r.Err()
	}
	if err == nil {
		err = fits(p.tool, output)
	}
	if p.released != nil {
		err = errors.New("a call that was held cannot be answered when it is released: it was promised to run")
	}
	if err != nil {
		return filtered{}, l.refusedBy(ctx, p, by, fmt.Errorf("what it answered cannot be delivered: %w", err))
	}
	p.pass.by, p.class = by, effect.Pure
	p.pass.now = p
	return filtered{permitted: p, answer: output}, nil
}

// replacedBy admits and permits a call again with the input that a filter gave
// it. It remains the same call: it is counted once and keeps its number.
func (l *Pipeline) replacedBy(ctx context.Context, p permitted, by string, input any) (permitted, *tool.Outcome) {
	ps := p.pass
	if ps.reached <= ps.settled {
		return p, nil
	}
	a, err := l.accept(p.admitted, input)
	if err != nil {
		return p, l.refusedBy(ctx, p, by, fmt.Errorf("it replaced the input by one that is not valid: %w", err))
	}
	if bytes.Equal(a.input, p.input) {
		return p, nil
	}
	if p.released != nil {
		return p, l.refusedBy(ctx, p, by, errors.New("the input of a call that was held cannot be replaced when it is released: it was decided about"))
	}
	a.redaction.like(p.redaction)
	ps.replaced = append(ps.replaced, record.Replacement{By: by, Original: p.digest})
	a.count(l)
	again := permitted{admitted: a}
	ps.now = again
	return l.permit(ctx, a)
}

// delivered is an executed call with the result that the filters made. settle
// accepts nothing else.
type delivered struct {
	executed
	replaced  []byte   // canonical form of the delivered result; nil: the result is unchanged
	by        []string // names of the filters that changed the result
	violation string   // why nothing can be delivered
}

// deliver is step 6: it shows the result to the filters that let the call
// through, in reverse order.
func (l *Pipeline) deliver(ctx context.Context, e executed) delivered {
	d, ps := delivered{executed: e}, e.pass
	if ps == nil {
		return d
	}
	ctx, cancel := l.p.Host.WithTimeout(context.WithoutCancel(ps.within(ctx)), l.p.Limits.VerifyTimeout, tool.ErrTimeout)
	defer cancel()
	now, asked := e.output, false
	for i := ps.let - 1; i >= 0; i-- {
		f := l.p.Filters[i]
		if f.After == nil {
			continue
		}
		if !asked {
			if err := l.p.Host.Point(ctx, "tool.deliver"); err != nil {
				d.violation = "showing the result to the filters was interrupted: " + err.Error()
				return d
			}
			asked = true
		}
		next, err := l.after(ctx, f, e, now)
		if err != nil {
			d.replaced, d.by, d.violation = nil, nil, "filter "+f.Name+": "+canon.Printable(err.Error(), maxWhy)
			return d
		}
		if !bytes.Equal(next, now) {
			now, d.replaced, d.by = next, next, append(d.by, f.Name)
		}
	}
	return d
}

// after shows a result to one filter and accepts the result that it returns.
func (l *Pipeline) after(ctx context.Context, f filter.Filter, e executed, now []byte) (next []byte, err error) {
	p := e.permitted
	seen := &filterCall{p: &p, run: p.pass, hook: hookAfter}
	r, err := runAfter(ctx, f, seen, cloneResult(now))
	switch {
	case err != nil:
		return nil, err
	case seen.answer != nil || seen.replaces:
		return nil, errors.New("it answered, or replaced the input, when the call had run")
	}
	if next, err = l.encode(r); err == nil {
		err = r.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("what it made of the result: %w", err)
	}
	if bytes.Equal(next, now) {
		return now, nil
	}
	if len(next)+len(e.output) > toolaccess.MaxBytes {
		return nil, fmt.Errorf("what it made of the result has %d bytes; with the result itself that is more than the %d that a record holds", len(next), toolaccess.MaxBytes)
	}
	if fits(e.tool, e.output) == nil { // otherwise verify reports the mismatch
		if err := fits(e.tool, next); err != nil {
			return nil, fmt.Errorf("what it made of the result: %w", err)
		}
	}
	return next, nil
}

func runAfter(ctx context.Context, f filter.Filter, seen *filterCall, r tool.Result) (out tool.Result, err error) {
	defer panicked(&err)
	return f.After(ctx, seen, r)
}

// over completes the run through the filters. It adds their texts to the
// outcome and calls Ended of the filters that saw the call, in reverse order.
// The other filters see a denial too.
func (ps *filterRun) over(ctx context.Context, o tool.Outcome, v *redaction) tool.Outcome {
	if ps == nil {
		return v.outcome(o)
	}
	if ps.now.redaction != nil { // from the input before a filter replaced it
		v = ps.now.redaction
	}
	o = v.outcome(o)
	o.EndLoop = ps.end()
	if ps.by != "" && (o.Stage == "filter" || o.Status != tool.StatusDenied) {
		o.Filter = ps.by
	}
	l := ps.line
	ctx, cancel := l.p.Host.WithTimeout(context.WithoutCancel(ps.within(ctx)), l.p.Limits.VerifyTimeout, tool.ErrTimeout)
	defer cancel()
	for i, f := range slices.Backward(l.p.Filters) {
		name, hook := "ended", f.Ended
		if i >= ps.reached {
			name, hook = "denied", f.Denied
		}
		if hook != nil && (i < ps.reached || o.Status == tool.StatusDenied) {
			l.runObserver(f.Name, name, func() { hook(ctx, &filterCall{p: &ps.now, run: ps, hook: hookEnded}, cloneOutcome(o)) })
		}
	}
	return o
}

// denied stores the refusal of a call that no filter has seen yet.
func (ps *filterRun) denied(p permitted, d *callstate.DeniedError) {
	if ps != nil && ps.reached == 0 {
		ps.now, ps.refused = p, d
	}
}

// runObserver runs a hook whose result does not matter, and recovers its panic.
func (l *Pipeline) runObserver(name, hook string, run func()) {
	var err error
	defer func() {
		if err != nil && l.p.Panicked != nil {
			l.p.Panicked(name, hook, err)
		}
	}()
	defer panicked(&err)
	run()
}

// BatchRefusal records that a filter refused a whole batch.
type BatchRefusal struct {
	by  string
	why error
}

// BeginBatch shows a batch to the filters before its calls run. Each request of
// the batch must carry the refusal that it returns: its call is then denied when
// it reaches the filters. The caller must call ended with the outcomes.
func (l *Pipeline) BeginBatch(ctx context.Context, calls []tool.Request) (refusal *BatchRefusal, ended func(outcomes []tool.Outcome)) {
	if l == nil || len(l.p.Filters) == 0 || len(calls) == 0 {
		return nil, func([]tool.Outcome) {}
	}
	b, reached := &filterBatch{line: l, calls: slices.Clone(calls)}, 0
	for _, f := range l.p.Filters {
		reached++
		if err := runBatch(ctx, f, b); err != nil {
			refusal = &BatchRefusal{by: f.Name, why: fmt.Errorf("it refused the batch: %w", err)}
			break
		}
	}
	return refusal, func(outcomes []tool.Outcome) {
		ctx, cancel := l.p.Host.WithTimeout(context.WithoutCancel(ctx), l.p.Limits.VerifyTimeout, tool.ErrTimeout)
		defer cancel()
		for i := reached - 1; i >= 0; i-- {
			if f := l.p.Filters[i]; f.BatchEnded != nil {
				all := make([]tool.Outcome, 0, len(outcomes))
				for _, o := range outcomes {
					all = append(all, cloneOutcome(o))
				}
				l.runObserver(f.Name, "batch_ended", func() { f.BatchEnded(ctx, b, all) })
			}
		}
	}
}

func runBatch(ctx context.Context, f filter.Filter, b *filterBatch) (err error) {
	if f.Batch == nil {
		return nil
	}
	defer panicked(&err)
	return f.Batch(ctx, b)
}
