package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// The size of a record: the minimum that a bare journal writes for a call that
// changes a file.
const bareRecord = 512

// writes compares file_write of 4 KiB over an existing file, durable, with the
// default policy, with a program that does only the same steps. These are a
// record before and one after, each synced; the new content in a file beside
// the old one, synced; the exchange of the two; the folder, synced.
func writes(c clock) ([]promiseRow, error) {
	dir, err := os.MkdirTemp("", "remit-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	ours, end, err := remitWrite(dir)
	if err != nil {
		return nil, err
	}
	bare, err := bareWrite(dir)
	if err != nil {
		return nil, err
	}
	t, err := interleave(c, subject{name: "file_write", op: ours}, subject{name: "bare steps", op: bare})
	if err == nil {
		err = end()
	}
	if err != nil {
		return nil, err
	}
	return []promiseRow{most("write", "file_write, 4 KiB, durable, to bare steps", t, "file_write", "bare steps", 1.3)}, nil
}

// filesRuntime returns a runtime with the tools of files, the default policy and
// a durable journal, and what closes the journal.
func filesRuntime(work, state string) (*agent.Runtime, func() error, error) {
	j, err := sqlite.Open(context.Background(), state)
	if err != nil {
		return nil, nil, err
	}
	e, err := rego.New(rego.Options{
		Sources: []rego.Source{{FS: policies.Workspace(), Prefix: policies.Prefix}}, Timeout: time.Minute,
	})
	if err != nil {
		return nil, nil, err
	}
	rt, err := agent.New(agent.Tools(builtin.Files()...), agent.Root("workspace", work), agent.Policy(e), agent.Journal(j))
	return rt, j.Close, err
}

func remitWrite(dir string) (op func(int) error, end func() error, err error) {
	work := filepath.Join(dir, "work")
	if err := seed(work); err != nil {
		return nil, nil, err
	}
	rt, end, err := filesRuntime(work, filepath.Join(dir, "state"))
	if err != nil {
		return nil, nil, err
	}
	tx, err := begun(rt)
	if err != nil {
		return nil, nil, err
	}
	turn := 0
	op = func(int) error {
		turn++
		_, err := tx.Invoke(context.Background(), "file_write", tool.Args{"path": "a.txt", "content": content(turn)})
		return err
	}
	return op, end, nil
}

// seed creates a folder with the file to overwrite.
func seed(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "a.txt"), []byte(content(0)), 0o600)
}

func content(turn int) string { return fmt.Sprintf("%04096d", turn) }

func bareWrite(dir string) (func(int) error, error) {
	work := filepath.Join(dir, "bare")
	if err := seed(work); err != nil {
		return nil, err
	}
	record, err := bareLog(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	old, young := filepath.Join(work, "a.txt"), filepath.Join(work, ".new")
	turn := 0
	return func(int) error {
		turn++
		for _, step := range []func() error{
			record,
			func() error { return synced(young, content(turn)) },
			func() error { return exchange(young, old) },
			func() error { return syncFolder(work) },
			record,
			func() error { return os.Remove(young) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// bareLog returns a function that appends a record and syncs it, in a file of
// constant size, like SQLite's log in most cases.
func bareLog(path string) (func() error, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	const size = 4 << 20
	if _, err := f.Write(make([]byte, size)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	line, at := make([]byte, bareRecord), int64(0)
	return func() error {
		if _, err := f.WriteAt(line, at); err != nil {
			return err
		}
		at = (at + bareRecord) % size
		return syncData(f)
	}, nil
}

func synced(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}
