package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// The sizes of the transactions of which a measurement reverts one call.
const fewCalls, manyCalls = 10, 1_000

// reverts compares the revert of one file_write with the call, and in a
// transaction of many calls with that in a transaction of few. Each call writes
// a new file of 4 KiB, with a durable journal.
func reverts(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	w, err := newWriter(dir)
	if err != nil {
		return nil, err
	}
	large, err := w.transaction(manyCalls)
	if err != nil {
		return nil, err
	}
	var small []string
	few := func() error { // so many calls are reverted in one measurement
		small = nil
		for range 40 {
			calls, err := w.transaction(fewCalls)
			if err != nil {
				return err
			}
			small = append(small, calls[0])
		}
		return nil
	}
	c.rounds = min(c.rounds, 3) // each prepares some hundred calls
	c.slice /= 4
	t, err := interleave(
		c,
		subject{name: "file_write", op: func(int) error {
			_, err := w.in(w.open)
			return err
		}},
		subject{name: "revert of one of 10", ready: few, op: func(int) error { return w.revertNext(&small) }},
		subject{name: "revert of one of 1,000", op: func(int) error { return w.revertNext(&large) }},
	)
	if err == nil {
		err = w.close()
	}
	if err != nil {
		return nil, err
	}
	return []promiseRow{
		most("revert", "revert of a file_write of 4 KiB, to the call", t, "revert of one of 10", "file_write", 1.3),
		most("revert", "revert of one call of 1,000, to one of 10", t, "revert of one of 1,000", "revert of one of 10", 1.2),
	}, nil
}

// writer writes files in transactions of one session, and reverts them.
type writer struct {
	session *agent.Session
	open    *agent.Txn // of single calls
	next    int
	close   func() error
}

func newWriter(dir string) (*writer, error) {
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, err
	}
	rt, end, err := filesRuntime(work, filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	w := &writer{close: end}
	if w.session, err = rt.Session(context.Background(), perm.Principal{ID: "coder"}); err != nil {
		return nil, err
	}
	w.open, err = w.session.Begin(context.Background())
	return w, err
}

// in writes a new file in a transaction, and returns the ID of the call.
func (w *writer) in(tx *agent.Txn) (call string, err error) {
	w.next++
	out, err := tx.Invoke(context.Background(), "file_write", tool.Args{"path": fmt.Sprint(w.next, ".txt"), "content": content(w.next)})
	return out.Call, err
}

// transaction commits a transaction of so many calls, and returns their IDs.
func (w *writer) transaction(calls int) (ids []string, err error) {
	tx, err := w.session.Begin(context.Background())
	for range calls {
		if err != nil {
			return nil, err
		}
		var id string
		id, err = w.in(tx)
		ids = append(ids, id)
	}
	if err != nil {
		return nil, err
	}
	return ids, tx.Commit(context.Background())
}

// revertNext reverts the last of a list of calls, which it shortens.
func (w *writer) revertNext(calls *[]string) error {
	list := *calls
	if len(list) == 0 {
		return fmt.Errorf("%w: no call is left to revert", errAnswer)
	}
	*calls = list[:len(list)-1]
	rep, err := w.session.Revert(context.Background(), list[len(list)-1], revert.Options{})
	if err == nil && len(rep.Items) != 1 {
		err = fmt.Errorf("%w: %d items", errAnswer, len(rep.Items))
	}
	return err
}
