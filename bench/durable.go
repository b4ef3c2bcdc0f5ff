package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

const many = 64

// durables compares durable calls of a tool that changes a map with one
// fdatasync, and with the same calls on a journal in memory: the difference is
// the cost of the journal.
func durables(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	sync, err := bareLog(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	durable, err := keyed(agent.Journal(j), 0)
	if err != nil {
		return nil, err
	}
	// A journal in memory grows, so each measurement uses a new one.
	memory := &resettingOp{fresh: func() (func(int) error, error) { return keyed(agent.Journal(journal.Memory()), 0) }}
	t, err := interleave(
		c,
		subject{name: "one fdatasync", op: func(int) error { return sync() }},
		subject{name: "durable, 1 caller", op: durable},
		subject{name: "durable, 64 callers", callers: many, op: durable},
		subject{name: "memory, 64 callers", callers: many, op: memory.do},
	)
	if err != nil {
		return nil, err
	}
	rows, err := written(durable)
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		return nil, err
	}
	return append([]promiseRow{
		most("durable", "durable call to one fdatasync, 1 caller", t, "durable, 1 caller", "one fdatasync", 2.5),
		least("durable", "rate of durable calls to those in memory, 64 callers", t, "durable, 64 callers", "memory, 64 callers", 0.35),
	}, rows...), nil
}

// keyed returns a call that stores its effect under the call's operation key.
// Each caller has its own session and transaction. The transaction is committed
// after each calls; 0: never.
func keyed(journal agent.Option, each int) (func(caller int) error, error) {
	put, err := putTool()
	if err != nil {
		return nil, err
	}
	rules := map[string]string{"p.rego": "package remit\n\nallow contains \"it keeps texts\" if input.tool.name == \"put\"\n"}
	e, err := rego.New(rego.Options{Modules: rules, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	rt, err := agent.New(agent.Tools(put), agent.Policy(e), journal)
	if err != nil {
		return nil, err
	}
	var txns [many]*agent.Txn
	var turns [many]int
	for i := range txns {
		if txns[i], err = begun(rt); err != nil {
			return nil, err
		}
	}
	return func(caller int) error {
		turns[caller]++
		if each > 0 && turns[caller]%each == 0 {
			if err := txns[caller].Commit(context.Background()); err != nil {
				return err
			}
			var err error
			if txns[caller], err = begun(rt); err != nil {
				return err
			}
		}
		_, err := txns[caller].Invoke(context.Background(), "put", fmt.Sprintf("text %d of caller %d", turns[caller], caller))
		return err
	}, nil
}

func putTool() (tool.Tool, error) {
	var mu sync.Mutex
	effects := map[string]string{}
	put := func(_ context.Context, tc ctxperm.ToolContext, in string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(effects) > 10000 { // the map itself is not measured
			clear(effects)
		}
		effects[tc.Call().Key] = in
		return "kept", nil
	}
	undo := func(_ context.Context, rc tool.RevertContext) error {
		mu.Lock()
		defer mu.Unlock()
		delete(effects, rc.Key)
		return nil
	}
	return tool.CreateWith("put", "Keeps a text.", nil, put, tool.Effect(effect.Compensable), tool.RevertWith("1", undo))
}

// resettingOp is an operation that is set up again after a number of runs.
type resettingOp struct {
	mu    sync.Mutex
	fresh func() (func(int) error, error)
	op    func(int) error
	left  int
}

func (r *resettingOp) do(caller int) error {
	r.mu.Lock()
	var err error
	if r.left--; r.left < 0 {
		r.left = 20000
		r.op, err = r.fresh()
	}
	op := r.op
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return op(caller)
}
