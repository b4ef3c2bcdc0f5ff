package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// runCalls runs the calls that are not refused, in concurrent groups, and fills
// in their outcomes. It ends early if a call waits for an approval, because
// later calls can depend on it.
func (r *loopRun) runCalls(ctx context.Context, calls []wire.Call, outcomes []tool.Outcome, refused []bool) (ran int, ends string, err error) {
	asks := r.asks(calls)
	var run []int
	for i, c := range calls {
		if c.Problem == nil && !refused[i] {
			run = append(run, i)
		}
	}
	limit := min(r.Limits.TurnTimeout, r.Limits.Timeout-r.c.Time)
	inside, cancel := r.host().WithTimeout(ctx, max(1, limit), tool.ErrTimeout)
	defer cancel()
	r.c.Waiting = nil
	batch, ended := r.batch(inside, asks, run)
	defer func() { ended(outcomes) }()
	for _, group := range r.groups(asks, run) {
		r.together(inside, batch, asks, group, outcomes)
		if ctx.Err() != nil { // the caller cancelled: the model gets no answer, and a later run continues
			return ran, "", context.Cause(ctx)
		}
		for _, i := range group {
			if outcomes[i].Status == tool.StatusPending {
				r.c.Waiting = append(r.c.Waiting, outcomes[i].Call)
			}
			ends = cmp.Or(ends, outcomes[i].EndLoop)
		}
		if len(r.c.Waiting) > 0 {
			return ran, "", r.waiting(ctx)
		}
		ran += len(group)
	}
	return ran, ends, nil
}

// batch makes the requests of a turn and shows them to the filters as one
// batch, however they are grouped.
func (r *loopRun) batch(ctx context.Context, asks []BatchCall, run []int) (batch map[int]pipeline.Request, ended func([]tool.Outcome)) {
	turn, calls := r.tx.s.state.nextTurn(), make([]tool.Request, len(run))
	for n, i := range run {
		calls[n] = tool.Request{Tool: asks[i].Tool, Input: asks[i].Input, Batch: perm.BatchFacts{Index: i, Count: len(asks)}, Turn: turn}
	}
	refusal, tell := r.tx.line.BeginBatch(ctx, calls)
	batch = make(map[int]pipeline.Request, len(run))
	for n, i := range run {
		batch[i] = pipeline.Request{Request: calls[n], Refusal: refusal}
	}
	return batch, func(outcomes []tool.Outcome) {
		all := make([]tool.Outcome, 0, len(run))
		for _, i := range run {
			all = append(all, outcomes[i])
		}
		tell(all)
	}
}

// together runs one group of calls.
func (r *loopRun) together(ctx context.Context, batch map[int]pipeline.Request, asks []BatchCall, group []int, outcomes []tool.Outcome) {
	var all sync.WaitGroup
	for _, i := range group {
		all.Go(func() { outcomes[i] = r.one(ctx, asks[i], batch[i]) })
	}
	all.Wait()
}

// one runs a call, or resumes one that waited.
func (r *loopRun) one(ctx context.Context, ask BatchCall, call pipeline.Request) tool.Outcome {
	if r.resumed {
		_, c, err := revert.LoadCall(ctx, r.tx.s.rt.journal, r.tx.s.CallID(ask.ID))
		if err == nil && c.Phase == revert.PhasePending {
			out, _ := r.tx.Resume(ctx, c.Ref.Call) // the outcome contains the error
			return out
		}
	}
	out, _ := r.tx.invoke(ctx, call, ask.ID, true)
	return withCurrentState(out)
}

// withCurrentState returns the current outcome of a call: a call that is answered
// from the journal can have been reverted since.
func withCurrentState(out tool.Outcome) tool.Outcome {
	if !out.Status.OK() || out.Reverted == "" {
		return out
	}
	out.Output, out.Result, out.Status = []byte("null"), tool.Result{}, tool.StatusUnknown
	out.Text = "It was done, and not all of it could be reverted since. Look at the state first."
	if out.Reverted == "all" {
		out.Status, out.Text = tool.StatusCancelled, "It was done, and has been reverted since: nothing of it is left."
	}
	out.Error = &tool.Problem{What: "the call was reverted", Why: out.Text}
	return out
}

// asks names each call by its conversation, its turn and its request. A call
// that is requested again after a crash is then the same call, even if the
// provider changes its ID. Some providers repeat IDs or give none.
func (r *loopRun) asks(calls []wire.Call) []BatchCall {
	asks, seen := make([]BatchCall, len(calls)), map[string]int{}
	for i, c := range calls {
		if c.Problem != nil {
			continue
		}
		input := []byte(c.Input)
		if v, err := canon.Parse(input, canon.DefaultLimits()); err == nil {
			input = v.Canonical()
		}
		turn := []byte(strconv.Itoa(r.c.Turns))
		same := string(canon.Sum("remit/loop-call/v1", []byte(r.c.ID), turn, []byte(c.Name), input))
		asks[i] = BatchCall{Tool: c.Name, Input: c.Input, ID: fmt.Sprintf("loop %s %d", same, seen[same])}
		seen[same]++
	}
	return asks
}

// groups splits calls into groups that run concurrently, in the order of the
// turn.
func (r *loopRun) groups(asks []BatchCall, run []int) (groups [][]int) {
	if r.Order == FullyConcurrent && len(run) > 0 {
		return [][]int{run}
	}
	joins := false // the last group accepts more calls
	for _, i := range run {
		free := r.Order == ConcurrentReads && r.independent(asks[i])
		if free && joins {
			groups[len(groups)-1] = append(groups[len(groups)-1], i)
			continue
		}
		groups, joins = append(groups, []int{i}), free
	}
	return groups
}

// independent reports whether a call does not need other calls of its turn.
func (r *loopRun) independent(ask BatchCall) bool {
	t, ok := r.tx.s.tools().Get(ask.Tool)
	if !ok {
		return false
	}
	input, _ := ask.Input.(json.RawMessage)
	class, err := t.ClassFor(input)
	return err == nil && (class == effect.Pure || t.Spec().Hints.Concurrent)
}
