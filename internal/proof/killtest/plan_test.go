//go:build linux

package killtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// plan lists the work of each worker of a process, each in its own transaction
// and folder.
type plan [][]step

// step is one call, or the end of a transaction: commit, abort or keep.
type step struct {
	Tool string
	Args any
}

// newPlan returns a plan with some calls of every kind, in random order.
func newPlan(r *rand.Rand, workers, calls int, sandbox bool) (p plan) {
	for w := range workers {
		var steps []step
		menu := menuOf(w, sandbox)
		for _, n := range r.Perm(len(menu)) {
			if len(steps) < calls {
				steps = append(steps, menu[n])
			}
		}
		end := []string{"commit", "commit", "keep", "abort"}[r.IntN(4)]
		p = append(p, append(steps, step{Tool: end}))
	}
	return p
}

// menuOf returns calls that a worker can make in any order, each once.
func menuOf(w int, sandbox bool) []step {
	in := func(name string) string { return fmt.Sprintf("w%d/%s", w, name) }
	sql := func(text string, params ...any) step {
		return step{"sql_execute", tool.Args{"database": "main", "sql": text, "params": params}}
	}
	menu := []step{
		{"file_write", tool.Args{"path": in("a.txt"), "content": "other"}},
		{"file_write", tool.Args{"path": in("new.txt"), "content": "new", "mode": "0600"}},
		{"file_edit", tool.Args{"path": in("b.txt"), "old": "be", "new": "wasp"}},
		{"file_delete", tool.Args{"path": in("c.txt")}},
		{"file_move", tool.Args{"from": in("sub"), "to": in("moved")}},
		{"file_copy", tool.Args{"from": in("e.txt"), "to": in("copy.txt")}},
		sql("UPDATE a SET v = v || 'x' WHERE worker = ?", w),
		sql("INSERT INTO a(id, worker, v) VALUES (?, ?, 'new')", 100+w, w), // an ID that another one released is held until its end
		sql("DELETE FROM a WHERE worker = ? AND v LIKE 'two%'", w),
		{"keyed", tool.Args{"name": fmt.Sprintf("keyed of %d", w)}},
		{"plain", tool.Args{"name": fmt.Sprintf("plain of %d", w)}},
		{"ping", "ping"},
		{"mail", "mail"},
	}
	if w == 0 {
		menu = append(menu, step{"change", tool.Args{"name": "changed"}})
	}
	if sandbox {
		menu = append(menu, step{"shell_run", tool.Args{"script": fmt.Sprintf(
			"cd %s && echo more >> p.txt && chmod 600 q.txt && mkdir n && ln -s ../p.txt n/link && rm r.txt", fmt.Sprintf("w%d", w))}})
	}
	return menu
}

// say prints one line for the parent, and returns after the system has received
// it.
func say(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format+"\n", args...) }

// say prints a line unless the process is quiet.
func (p *program) say(format string, args ...any) {
	if !p.Quiet {
		say(format, args...)
	}
}

// work runs all workers.
func (p *program) work(ctx context.Context, all plan) error {
	errs := make([]error, len(all))
	var workers sync.WaitGroup
	for w, steps := range all {
		workers.Go(func() { errs[w] = p.worker(ctx, steps) })
	}
	workers.Wait()
	return errors.Join(errs...)
}

func (p *program) worker(ctx context.Context, steps []step) error {
	s, err := p.rt.Session(ctx, perm.Principal{ID: "worker"})
	if err != nil {
		return err
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	for _, do := range steps {
		switch do.Tool {
		case "keep":
		case "commit":
			if err := tx.Commit(ctx); err != nil {
				return fmt.Errorf("commit: %w", err)
			}
			p.say("committed %s", tx.ID())
			head, err := p.journal.Head(ctx)
			if err != nil {
				return err
			}
			p.say("head %s", head)
		case "abort":
			rep, err := tx.Revert(ctx, revert.Options{})
			if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
				return err
			}
			p.say("reverted %s %s", tx.ID(), rep.State)
		default:
			out, err := tx.Invoke(ctx, do.Tool, do.Args)
			if err != nil && !p.Goes {
				return fmt.Errorf("%s: %s: %w", do.Tool, out.Text, err)
			}
			if err != nil {
				_, _ = fmt.Fprintf(os.Stderr, "%s %s: %v\n", do.Tool, out.Status, err)
			}
			if out.Call == "" {
				continue
			}
			p.say("call %s %s %s", tx.ID(), out.Call, out.Status)
		}
	}
	return nil
}

// forward returns the transactions that did work, oldest first.
func (p *program) forward(ctx context.Context) (all []*revert.Txn, err error) {
	for e, err := range p.journal.Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		if err != nil {
			return nil, err
		}
		t, err := revert.Load(ctx, p.journal, e.Header.Txn)
		if err != nil {
			return nil, err
		}
		if t.Reverts == "" && t.Redoes == "" {
			all = append(all, t)
		}
	}
	return all, nil
}

// all reverts every transaction, and for a redo redoes every one after that.
func (p *program) all(ctx context.Context, what string) error {
	txns, err := p.forward(ctx)
	if err != nil {
		return err
	}
	for i := range txns {
		id := txns[len(txns)-1-i].ID
		if err := p.end(id, "revert", func() (revert.Report, error) { return p.rt.Revert(ctx, id, revert.Options{}) }); err != nil {
			return err
		}
	}
	if what != "redo" {
		return nil
	}
	for _, t := range txns {
		if err := p.end(t.ID, what, func() (revert.Report, error) { return p.rt.Redo(ctx, t.ID, "kim") }); err != nil {
			return err
		}
	}
	return nil
}

// end reverts or redoes a whole transaction. A part of it may be left.
func (p *program) end(id, what string, do func() (revert.Report, error)) error {
	rep, err := do()
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		return fmt.Errorf("%s of %s: %w", what, id, err)
	}
	p.say("%s %s %s", what, id, rep.State)
	return nil
}
