package agent

import (
	"context"
	"sync"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// family reads the records of a session and of all sessions that it delegated
// to, because these exchange messages. What is made of them is a fold: each
// read has the records since the last one. So it is the same in every process,
// and omits erased records.
type family struct {
	journal journal.Journal
	first   string // session
	kinds   []record.Kind

	mu       sync.Mutex // never held across a wait
	pos      int64
	sessions map[string]bool
}

func newFamily(j journal.Journal, first string, kinds ...record.Kind) family {
	return family{journal: j, first: first, kinds: append(kinds, record.KindDelegated, record.KindErased), sessions: map[string]bool{first: true}}
}

// contentKinds are the records with what a session read.
func contentKinds() []record.Kind {
	return []record.Kind{record.KindHeard, record.KindStarted, record.KindDone, record.KindFailed, record.KindUnknown, record.KindVerified}
}

// read calls note for each new record, with the lock held, and lost for each
// record that was erased.
func (f *family) read(ctx context.Context, note func(call string, body record.Body), lost func(record.Header)) error {
	after, err := f.from(ctx)
	if err != nil {
		return err
	}
	for e, err := range f.journal.Entries(ctx, journal.Query{Kinds: f.kinds, After: after}) {
		if err == nil {
			err = f.entry(e, note, lost)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// from returns the position up to which the journal was read. Entries older
// than the session do not belong to it.
func (f *family) from(ctx context.Context) (after int64, err error) {
	f.mu.Lock()
	after = f.pos
	f.mu.Unlock()
	if after > 0 {
		return after, nil
	}
	for e, err := range f.journal.Entries(ctx, journal.Query{Session: f.first, Limit: 1}) {
		if err != nil {
			return 0, err
		}
		after = e.Pos
	}
	return after, nil
}

// entry processes an entry, once.
func (f *family) entry(e record.Entry, note func(string, record.Body), lost func(record.Header)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.Pos <= f.pos:
		return nil
	case !f.sessions[e.Header.Session]:
		f.pos = e.Pos
		return nil
	case e.Erased != "":
		f.pos = e.Pos
		if lost != nil {
			lost(e.Header)
		}
		return nil
	}
	rec, err := record.Unseal(e)
	if err != nil {
		return err
	}
	f.pos = e.Pos
	if d, is := rec.Body.(*record.Delegated); is {
		f.sessions[d.To] = true
		return nil
	}
	note(rec.Call, rec.Body)
	return nil
}
