package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// Declaration is what a composed tool says of itself.
type Declaration struct {
	Name, Description string
	Version           string
	Tags              []string        // besides those of the parts
	Input             json.RawMessage // schema; nil: that of the parts that get the input as it is
}

// Part is a tool of a composed one.
type Part struct {
	Tool tool.Tool
	// Input makes the part's input: of the call's input, and in a chain of the output of
	// the part before. Nil takes that as it is. It only computes: no effects.
	Input func(in json.RawMessage) (json.RawMessage, error)
	// With is Input for a part of a chain that also wants the call's own input. It is asked
	// with that and with the output of the part before.
	With func(call, before json.RawMessage) (json.RawMessage, error)
}

// Chain runs the parts one after the other, each with what the one before put out: its
// JSON, or else its text. The result is that of the last.
func Chain(about Declaration, parts ...Part) (tool.Tool, error) {
	return compose(about, &node{kind: "chain", parts: parts})
}

// Parallel runs the parts side by side, each with the call's input. The result is a JSON
// array of what they put out, in their order. When one fails the others come to their end,
// and all are reverted.
func Parallel(about Declaration, parts ...Part) (tool.Tool, error) {
	return compose(about, &node{kind: "parallel", parts: parts})
}

// Fallback runs the first part, and the next one only where the one before is known to have
// had no effect, or what it did was reverted. After an unknown outcome, a denial or the end
// of the call's time none follows.
func Fallback(about Declaration, parts ...Part) (tool.Tool, error) {
	return compose(about, &node{kind: "fallback", parts: parts})
}

// Conditional runs one of two parts. When only computes, from the call's input.
func Conditional(about Declaration, when func(in json.RawMessage) bool, then, otherwise Part) (tool.Tool, error) {
	if when == nil {
		return tool.Tool{}, fmt.Errorf("compose %q: the condition is missing", about.Name)
	}
	return compose(about, &node{kind: "conditional", parts: []Part{then, otherwise}, when: when})
}

// node is how parts are put together.
type node struct {
	kind  string
	parts []Part
	when  func(json.RawMessage) bool
}

// chosen is the one part of a conditional that runs.
func (n *node) chosen(in json.RawMessage) (i int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the condition panicked (%T)", p)
		}
	}()
	if n.when(in) {
		return 0, nil
	}
	return 1, nil
}

// input makes what a part gets, of the call's input and of what it is handed.
func (n *node) input(i int, call, from json.RawMessage) (in json.RawMessage, err error) {
	f, with := n.parts[i].Input, n.parts[i].With
	if with != nil {
		f = func(from json.RawMessage) (json.RawMessage, error) { return with(slices.Clone(call), from) }
	}
	if f == nil {
		return from, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("making its input panicked (%T)", p)
		}
	}()
	return f(from)
}

// execute is the code of the composed tool.
func (n *node) execute(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	live := contexts.Call(tc)
	if live == nil {
		return tool.Result{}, ctxperm.ErrClosed
	}
	r := &run{node: n, tc: tc, live: live, in: in}
	switch n.kind {
	case "chain":
		return r.chain(ctx)
	case "parallel":
		return r.parallel(ctx)
	case "fallback":
		return r.fallback(ctx)
	}
	i, err := n.chosen(in)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	e := r.part(ctx, i, in)
	return e.result, r.end([]partResult{e})
}

func (r *run) chain(ctx context.Context) (tool.Result, error) {
	var done []partResult
	var last tool.Result
	from := r.in
	for i := range r.node.parts {
		e := r.part(ctx, i, from)
		if done = append(done, e); e.err != nil {
			return tool.Result{}, r.end(done)
		}
		before := last
		last, from = e.result, e.result.Output()
		last.Sources = append(before.Sources, last.Sources...)
		last.Labels, last.Requires = append(before.Labels, last.Labels...), append(before.Requires, last.Requires...)
	}
	return last, nil
}

// errLeft is the end of a part that neither returned nor panicked.
var errLeft = errors.New("its code ended its goroutine before it returned")

func (r *run) parallel(ctx context.Context) (tool.Result, error) {
	done := make([]partResult, len(r.node.parts))
	var all sync.WaitGroup
	for i := range r.node.parts {
		done[i] = partResult{at: i, err: r.says(i, errLeft)} // until it has ended
		all.Go(func() { done[i] = r.part(ctx, i, r.in) })
	}
	all.Wait()
	if err := r.end(done); err != nil {
		return tool.Result{}, err
	}
	var out tool.Result
	var outputs []json.RawMessage
	for _, e := range done {
		outputs = append(outputs, e.result.Output())
		out.Parts, out.Sources = append(out.Parts, e.result.Parts...), append(out.Sources, e.result.Sources...)
		out.Labels, out.Requires = append(out.Labels, e.result.Labels...), append(out.Requires, e.result.Requires...)
	}
	var err error
	if out.JSON, err = canon.Marshal(outputs); err != nil {
		return tool.Result{}, r.end(append(done, partResult{err: err, harmless: true}))
	}
	return out, nil
}

func (r *run) fallback(ctx context.Context) (tool.Result, error) {
	var tried []partResult
	for i := range r.node.parts {
		mark := r.live.Mark()
		e := r.part(ctx, i, r.in)
		tried = append(tried, e)
		if e.err == nil {
			return e.result, nil
		}
		last := i == len(r.node.parts)-1
		if last || !e.harmless || ctx.Err() != nil || errors.Is(e.err, tool.ErrDenied) {
			break
		}
		if e.piece == nil { // it did not even begin
			continue
		}
		if err := e.piece.Rollback(context.WithoutCancel(ctx), mark); err != nil {
			tried[i].err = fmt.Errorf("%w; no other part runs in its place: %w", e.err, err)
			break
		}
	}
	return tool.Result{}, r.end(tried)
}
