package revert_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

var errFault = errors.New("this operation failed")

// faults fails the n-th of all operations of a process on its journal and its
// store, and records which one that was.
type faults struct {
	left int // operations before the failure; negative: none fails
	how  fault
	at   string // the operation that failed; empty: none yet
	only string // if set, counts only these operations
	log  []string

	sees         func(op string) // called for each operation, unless nil
	skipsBarrier bool            // writes are not durable, like those of a process that dies before its barrier
}

// fault is how an operation fails.
type fault struct {
	lost  bool // the effect happens and only the response is lost; a read ends half-way
	stuck bool // every later operation fails too, as for a journal in an unknown state
}

// hit counts an operation. The caller skips an operation that fails, unless it
// is lost.
func (f *faults) hit(op string) (fails, lost bool) {
	if f.sees != nil {
		f.sees(op)
	}
	if f.at != "" {
		return f.how.stuck, false
	}
	f.log = append(f.log, op)
	if f.only != "" && f.only != op {
		return false, false
	}
	if f.left--; f.left != -1 {
		return false, false
	}
	f.at = op
	return true, f.how.lost
}

// try runs an operation unless it fails, and returns its error.
func (f *faults) try(op string, do func() error) error {
	fails, lost := f.hit(op)
	if !fails {
		return do()
	}
	if lost {
		if err := do(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", op, errFault)
}

// faulty is a journal with faults.
type faulty struct {
	journal.Journal
	*faults
}

func (f *faulty) Append(ctx context.Context, b journal.Batch) error {
	fails, lost := f.hit("append")
	if fails && (!lost || !f.how.stuck) { // otherwise the batch is stored, and the response is lost
		return fmt.Errorf("append: %w", errFault)
	}
	b.Durable = b.Durable && !f.skipsBarrier
	err := f.Journal.Append(ctx, b)
	if fails && err == nil {
		err = fmt.Errorf("append: %w", errFault)
	}
	return err
}

func (f *faulty) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	fails, lost := f.hit("read entries")
	if !fails {
		return f.Journal.Entries(ctx, q)
	}
	return func(yield func(record.Entry, error) bool) {
		for e, err := range f.Journal.Entries(ctx, q) {
			if lost && !yield(e, err) {
				return // the reader has what it needs
			}
			break
		}
		yield(record.Entry{}, fmt.Errorf("read entries: %w", errFault))
	}
}

func (f *faulty) Unfinished(ctx context.Context) (open []journal.Ownership, err error) {
	return open, f.try("list what is unfinished", func() error { open, err = f.Journal.Unfinished(ctx); return err })
}

func (f *faulty) Alive(ctx context.Context, owner string) (alive bool, err error) {
	return alive, f.try("ask for an owner", func() error { alive, err = f.Journal.Alive(ctx, owner); return err })
}

func (f *faulty) Head(ctx context.Context) (h journal.Head, err error) {
	return h, f.try("read the head", func() error { h, err = f.Journal.Head(ctx); return err })
}

func (f *faulty) Hashes(ctx context.Context, at []int64) (h []tlog.Hash, err error) {
	return h, f.try("read hashes", func() error { h, err = f.Journal.Hashes(ctx, at); return err })
}

func (f *faulty) StoreContent(ctx context.Context, r io.Reader) (b journal.Blob, err error) {
	return b, f.try("keep", func() error { b, err = f.Journal.StoreContent(ctx, r); return err })
}

func (f *faulty) CollectGarbage(ctx context.Context, gone []effect.BlobRef) (c journal.GCReport, err error) {
	return c, f.try("collect", func() error { c, err = f.Journal.CollectGarbage(ctx, gone); return err })
}

func (f *faulty) OpenContent(ctx context.Context, ref effect.BlobRef) (content io.ReadCloser, err error) {
	err = f.try("open", func() error { content, err = f.Journal.OpenContent(ctx, ref); return err })
	if err != nil {
		return nil, err
	}
	return &faultyContent{content, f.faults}, nil
}

// faultyContent is content with faults.
type faultyContent struct {
	io.ReadCloser
	*faults
}

func (c *faultyContent) Read(p []byte) (n int, err error) {
	return n, c.try("read content", func() error { n, err = c.ReadCloser.Read(p); return err })
}

func (c *faultyContent) Close() error { return c.try("close content", c.ReadCloser.Close) }

// faultyTools replaces a program's tools: a service that books and cancels once
// for each key, and a Verify that reads the bookings.
type faultyTools struct {
	*faults
	till *till
}

type till struct{ booked, given map[string]bool }

func newTill() *till { return &till{map[string]bool{}, map[string]bool{}} }

func (f faultyTools) CanRevert(_ context.Context, c revert.Call) (ok bool, why string) {
	if c.Class() != effect.Compensable {
		return false, "its changes are all it did"
	}
	err := f.try("find a tool", func() error { return nil })
	return err == nil, fmt.Sprint(err)
}

func (f faultyTools) RevertCall(_ context.Context, _ revert.Recorder, c revert.Call, _, key string) error {
	return f.try("give back", func() error {
		if key != revert.RevertKey(c.Started.Key) {
			return errors.New("under another key")
		}
		f.till.given[c.Started.Key] = true
		return nil
	})
}

func (f faultyTools) Probe(_ context.Context, c revert.Call) (v record.Verified, err error) {
	return v, f.try("verify", func() error { v = f.look(c); return nil })
}

func (f faultyTools) ProbeReverted(_ context.Context, c revert.Call) record.Verified {
	if err := f.try("verify that it is gone", func() error { return nil }); err != nil {
		return record.Verified{Presence: effect.PresenceUnknown, Findings: []string{err.Error()}}
	}
	return f.look(c)
}

func (f faultyTools) look(c revert.Call) record.Verified {
	switch {
	case c.Class() != effect.Compensable:
		return record.Verified{}
	case f.till.booked[c.Started.Key] && !f.till.given[c.Started.Key]:
		return record.Verified{Presence: effect.PresenceApplied}
	}
	return record.Verified{Presence: effect.PresenceAbsent}
}
