package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // the plain scan does not use remit

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert/sqlite"
)

const history = 100_000

// recoveries compares opening and recovering a journal of 100,000 calls with
// reading all of its rows, and its memory with that of a tenth of the calls. In
// one case the transactions have ended, except for the last ones. In the worst
// case none has, so recovery must check each call.
func recoveries(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	few, all, open := filepath.Join(dir, "few"), filepath.Join(dir, "all"), filepath.Join(dir, "open")
	for _, err := range []error{live(few, history/10, perTxn), live(all, history, perTxn), live(open, history, 0)} {
		if err != nil {
			return nil, err
		}
	}
	c.rounds = min(c.rounds, 3) // each takes a while
	t, err := interleave(
		c,
		subject{name: "open and recover", once: true, op: func(int) error { return recovered(all) }},
		subject{name: "scan", once: true, op: func(int) error { return scanned(all) }},
		subject{name: "open and recover, none ended", once: true, op: func(int) error { return recovered(open) }},
		subject{name: "scan, none ended", once: true, op: func(int) error { return scanned(open) }},
	)
	if err != nil {
		return nil, err
	}
	kib, err := memories(c, few, all)
	if err != nil {
		return nil, err
	}
	memory := kib.ratio("all", "few")
	return []promiseRow{
		most("recover", "open and recover 100,000 calls, to a plain scan", t, "open and recover", "scan", 2),
		most("recover", "the same where no transaction has ended", t, "open and recover, none ended", "scan, none ended", 2),
		{
			Suite: "recover", What: "memory of it, 100,000 calls to 10,000", Ratio: memory, Target: 1.25, Met: memory <= 1.25,
			Of: fmt.Sprintf("%.0f MiB", median(kib["all"])/1024), To: fmt.Sprintf("%.0f MiB", median(kib["few"])/1024),
		},
	}, nil
}

// perTxn is the number of calls of a transaction.
const perTxn = 50

// live fills a journal with durable calls. The last transactions stay open, as
// after a kill of the process.
func live(dir string, calls, each int) error {
	j, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		return err
	}
	op, err := keyed(agent.Journal(j), each)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(calls))
	errs := make([]error, many)
	for i := range many {
		group.Go(func() {
			for left.Add(-1) >= 0 && errs[i] == nil {
				errs[i] = op(i)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return j.Close()
}

func recovered(dir string) error {
	j, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		return err
	}
	rt, err := agent.New(agent.Journal(j))
	if err != nil {
		return err
	}
	rec, err := rt.Recover(context.Background())
	if err == nil && len(rec.Abandoned) != many {
		err = fmt.Errorf("%w: %d transactions without an owner", errAnswer, len(rec.Abandoned))
	}
	if err != nil {
		return err
	}
	return j.Close()
}

// scanned reads every column of every row: nothing is decoded or checked.
func scanned(dir string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "journal.db")+"?mode=ro")
	if err != nil {
		return err
	}
	rows, err := db.Query("SELECT * FROM batches ORDER BY key")
	if err != nil {
		return err
	}
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	row, into := make([]sql.RawBytes, len(names)), make([]any, len(names))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return db.Close()
}

// child is the argument of a process that recovers once, to measure its memory.
const child = "recover-once"

func inChild(dir string) error {
	if err := recovered(dir); err != nil {
		return err
	}
	_, err := fmt.Println(peak())
	return err
}

// memories returns the peak memory, in KiB, of processes that recover.
func memories(c clock, few, all string) (times, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	kib := times{}
	for range c.rounds {
		for name, dir := range map[string]string{"few": few, "all": all} {
			cmd := exec.Command(self, child, dir)
			cmd.Stderr = os.Stderr
			said, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("recover in a process of its own: %w", err)
			}
			var most float64
			if _, err := fmt.Sscan(string(said), &most); err != nil {
				return nil, err
			}
			kib[name] = append(kib[name], most)
		}
	}
	return kib, nil
}

// peak returns the peak memory of this process, in KiB, from the system, or
// else from the runtime.
func peak() float64 {
	status, _ := os.ReadFile("/proc/self/status") // missing on other systems
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		var kib float64
		if _, err := fmt.Sscan(rest, &kib); err == nil {
			return kib
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys / 1024)
}
