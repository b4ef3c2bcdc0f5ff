package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/opcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

type txn = *agent.Txn

// budget is the number of steps after which an agent begins nothing new.
const budget = 50

// spawn starts an actor of a process.
func (w *simState) spawn(p *process, run func(*simState, context.Context, *actor)) {
	a := &actor{id: len(w.actors), proc: p, random: rand.New(rand.NewPCG(w.seed, uint64(100+len(w.actors))))}
	w.actors = append(w.actors, a)
	ctx := w.context(a)
	w.all.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				w.wrong("actor %d panicked: %v", a.id, r)
			}
		}()
		growStack(1)
		w.sched.park(ctx, p, "begin")
		run(w, ctx, a)
	})
}

// growStack grows the stack of a goroutine while it is small. Otherwise the runtime
// copies it four times, which took a tenth of all time.
//
//go:noinline
func growStack(n int) byte {
	var room [24 << 10]byte
	room[n] = 1
	return room[n/2]
}

func (w *simState) context(a *actor) context.Context {
	return context.WithValue(context.WithValue(context.Background(), stateKey{}, w), actorKey{}, a)
}

// client runs a client's request, which the client may cancel.
func (w *simState) client(ctx context.Context, a *actor, what string, do func(context.Context)) {
	if w.log != nil {
		w.log(fmt.Sprintf("  actor %d of process %d: %s", a.id, a.proc.id, what))
	}
	ctx, cancel := w.sched.within(ctx, a.proc, time.Hour, context.Canceled, &w.sched.calls)
	defer cancel()
	do(ctx)
	w.sched.park(ctx, a.proc, "told")
}

// agentOf is an agent: transactions in sequence, and sometimes other requests.
func agentOf(w *simState, ctx context.Context, a *actor) {
	s, err := w.session(ctx, a)
	if err != nil {
		return
	}
	for w.sched.steps < budget && !a.proc.poisoned {
		switch a.random.IntN(10) {
		case 0:
			w.revertSome(ctx, a)
		case 1:
			w.redo(ctx, a)
		default:
			w.transaction(ctx, a, s)
		}
	}
}

// session returns the session of the process, whose agents are one principal.
func (w *simState) session(ctx context.Context, a *actor) (*agent.Session, error) {
	if a.proc.session != nil {
		return a.proc.session, nil
	}
	var opts []agent.SessionOption
	if a.random.IntN(3) == 0 {
		opts = append(opts, agent.ClaimTimeout(time.Second))
	}
	s, err := a.proc.rt.Session(ctx, perm.Principal{ID: "agent"}, opts...)
	if err == nil {
		a.proc.session = s
	}
	return s, err
}

// keeperOf recovers what dead processes left, and continues as an agent.
func keeperOf(w *simState, ctx context.Context, a *actor) {
	var gone []string
	w.client(ctx, a, "recover", func(ctx context.Context) {
		rec, err := a.proc.rt.Recover(ctx)
		w.refused(err)
		gone = rec.Abandoned
	})
	for _, id := range gone {
		if a.random.IntN(2) == 0 {
			w.revert(ctx, a, id)
		}
	}
	agentOf(w, ctx, a)
}

// transaction runs one, or adds calls to another agent's.
func (w *simState) transaction(ctx context.Context, a *actor, s *agent.Session) {
	if tx := w.shared(a); tx != nil {
		w.invoke(ctx, a, tx)
		return
	}
	var tx txn
	w.client(ctx, a, "begin", func(ctx context.Context) {
		var err error
		tx, err = s.Begin(ctx)
		w.refused(err)
	})
	if tx == nil {
		return
	}
	w.mu.Lock()
	w.open = append(w.open, &shared{a.proc, tx})
	w.mu.Unlock()
	for range 1 + a.random.IntN(2) {
		w.invoke(ctx, a, tx)
	}
	switch d := a.random.IntN(10); {
	case d < 6:
		w.commit(ctx, a, tx)
	case d < 9:
		w.revert(ctx, a, tx.ID())
	default: // it stays open until a process reverts it
	}
}

// shared sometimes returns an open transaction of another agent of the same
// process.
func (w *simState) shared(a *actor) txn {
	w.mu.Lock()
	defer w.mu.Unlock()
	var own []txn
	for _, o := range w.open {
		if o.proc == a.proc {
			own = append(own, o.txn)
		}
	}
	if len(own) == 0 || a.random.IntN(4) > 0 {
		return nil
	}
	return own[a.random.IntN(len(own))]
}

func (w *simState) closed(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = slices.DeleteFunc(w.open, func(o *shared) bool { return o.txn.ID() == id })
}

// plan returns the next call.
func (w *simState) plan(a *actor) (name, input string) {
	outside := []string{"book", "book", "order", "fire", "mail", "never"}
	if a.random.IntN(4) == 0 {
		name = outside[a.random.IntN(len(outside))]
		return name, w.content(name)
	}
	if a.random.IntN(5) == 0 {
		name = w.content(counted)
		if a.random.IntN(6) == 0 {
			name += "!"
		}
		return counted, name
	}
	var parts []string
	for range 1 + a.random.IntN(5)/3 {
		path := paths[a.random.IntN(len(paths))]
		switch a.random.IntN(12) {
		case 0:
			parts = append(parts, path+"-")
		case 1:
			parts = append(parts, path+">"+paths[a.random.IntN(len(paths))])
		case 2:
			parts = append(parts, path+"="+w.content("ours"), "!")
		default:
			parts = append(parts, path+"="+w.content("ours"))
		}
	}
	return "write", strings.Join(parts, ",")
}

func (w *simState) invoke(ctx context.Context, a *actor, tx txn) {
	name, input := w.plan(a)
	w.client(ctx, a, tx.ID()+" "+name+" "+input, func(ctx context.Context) {
		out, err := tx.Invoke(ctx, name, input)
		w.recordResult(out)
		w.refused(err)
	})
}

// recordResult records the result of a call that a client got.
func (w *simState) recordResult(out tool.Outcome) {
	if w.log != nil {
		w.log(fmt.Sprintf("  -> %s %s %s %+v", out.Call, out.Tool, out.Status, out.Error))
	}
	switch out.Status {
	case tool.StatusDone:
		w.say(opcheck.Event{Kind: opcheck.Done, Txn: out.Txn, Call: out.Call})
	case tool.StatusFailed, tool.StatusDenied, tool.StatusCancelled, tool.StatusTimeout:
		w.checkFailed(out)
	case tool.StatusVerifyFailed:
		if out.Reverted == "all" {
			w.checkFailed(out)
		}
	case tool.StatusUnknown:
		w.note("unknown call", out.Call)
		w.say(opcheck.Event{Kind: opcheck.EffectUnknown, Txn: out.Txn})
	default:
	}
}

// checkFailed checks that nothing of a failed call is left. A held one is released
// again.
func (w *simState) checkFailed(out tool.Outcome) {
	if out.Tool != "mail" && out.Call != "" {
		w.say(opcheck.Event{Kind: opcheck.EffectReverted, Txn: out.Txn, Call: out.Call})
	}
}

func (w *simState) commit(ctx context.Context, a *actor, tx txn) {
	var err error
	for range 2 {
		w.client(ctx, a, "commit "+tx.ID(), func(ctx context.Context) {
			if err = tx.Commit(ctx); err == nil {
				w.say(opcheck.Event{Kind: opcheck.Ended, Txn: tx.ID(), State: opcheck.Committed})
			}
			w.refused(err)
		})
		if !errors.Is(err, agent.ErrNotReleased) {
			break
		}
	}
	if err == nil {
		w.closed(tx.ID())
	} else if a.random.IntN(2) == 0 {
		w.revert(ctx, a, tx.ID())
	}
}

// some returns a random transaction.
func (w *simState) some(a *actor) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.txns) == 0 {
		return ""
	}
	return w.txns[a.random.IntN(len(w.txns))]
}

func (w *simState) revertSome(ctx context.Context, a *actor) {
	if id := w.some(a); id != "" {
		w.revert(ctx, a, id)
	}
}

func (w *simState) revert(ctx context.Context, a *actor, id string) {
	w.client(ctx, a, "revert "+id, func(ctx context.Context) {
		before := w.redos(id)
		rep, err := a.proc.rt.Revert(ctx, id, revert.Options{})
		w.reported(id, before, rep, err)
	})
}

func (w *simState) redo(ctx context.Context, a *actor) {
	id := w.some(a)
	if id == "" {
		return
	}
	w.client(ctx, a, "redo "+id, func(ctx context.Context) {
		over := w.recordRedo(id, a.proc)
		rep, err := a.proc.rt.Redo(ctx, id, "somebody")
		over()
		w.countConflicts(rep)
		w.refused(err)
	})
}

// recordRedo records that a process begins to redo a transaction. The redo can take
// effect at any time until over is called, or the process is dead.
func (w *simState) recordRedo(id string, p *process) (over func()) {
	w.claims.Lock()
	defer w.claims.Unlock()
	b := &runningRedo{id, p}
	w.redoCounts[id]++
	w.runningRedos = append(w.runningRedos, b)
	w.say(opcheck.Event{Kind: opcheck.RedoStarted, Txn: id})
	return func() {
		w.claims.Lock()
		defer w.claims.Unlock()
		w.redoCounts[id]++
		w.runningRedos = slices.DeleteFunc(w.runningRedos, func(o *runningRedo) bool { return o == b })
	}
}

// redos returns a number that changes when a redo begins, or ends.
func (w *simState) redos(id string) int {
	w.claims.Lock()
	defer w.claims.Unlock()
	return w.redoCounts[id]
}

// reported records the claims of a report, unless the transaction was redone
// meanwhile.
func (w *simState) reported(id string, before int, rep revert.Report, err error) {
	w.refused(err)
	w.countConflicts(rep)
	if w.log != nil {
		w.log(fmt.Sprintf("  -> %+v %v", rep, err))
	}
	w.claim(id, before, rep, err)
	if !w.sched.unordered { // otherwise others change resources while the claims are recorded
		w.look()
	}
}

func (w *simState) claim(id string, before int, rep revert.Report, err error) {
	w.claims.Lock()
	defer w.claims.Unlock()
	w.sched.mu.Lock()
	under := slices.ContainsFunc(w.runningRedos, func(b *runningRedo) bool { return b.txn == id && !b.proc.ended })
	w.sched.mu.Unlock()
	if under || w.redoCounts[id] != before {
		return
	}
	for _, item := range rep.Items {
		if !item.Outcome.Clean() {
			continue
		}
		resource := item.Resource
		if strings.HasPrefix(resource, "tool://") {
			resource = ""
		}
		w.say(opcheck.Event{Kind: opcheck.EffectReverted, Txn: id, Call: item.Call, Resource: resource})
	}
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		return
	}
	switch rep.State {
	case revert.TxnReverted:
		w.say(opcheck.Event{Kind: opcheck.Ended, Txn: id, State: opcheck.Reverted})
		w.closed(id)
	case revert.TxnRevertedPartial:
		w.say(opcheck.Event{Kind: opcheck.Ended, Txn: id, State: opcheck.Partial})
		w.closed(id)
	default:
	}
}

// countConflicts counts the conflicts of a report.
func (w *simState) countConflicts(rep revert.Report) {
	for _, item := range rep.Items {
		if item.Outcome == effect.Conflict {
			w.conflict()
		}
	}
}

// refused checks an error that a client got.
func (w *simState) refused(err error) {
	switch {
	case err == nil:
	case errors.Is(err, record.ErrDamaged), strings.Contains(err.Error(), "panicked"):
		w.wrong("a client was told: %v", err)
	case errors.Is(err, revert.ErrBusy):
		w.conflict()
	}
	if err != nil && w.log != nil {
		w.log("  -> error " + err.Error())
	}
}
