package revert

import (
	"context"
	"sync"
	"time"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Recorder writes records into one stream of a journal: that of a transaction,
// or of a session outside any. It is a value; copies write the same stream.
type Recorder struct {
	journal journal.Journal
	host    Host
	session string
	txn     string
	watch   func(at time.Time, lines []CallRecord)
	stream  *stream // of a transaction that was begun here; nil: its earlier records are unknown
}

// NewRecorder returns a recorder for a session's stream.
func NewRecorder(j journal.Journal, h Host, session string) Recorder {
	return Recorder{journal: j, host: h, session: session}
}

// In returns a recorder for a transaction of the same session. The journal
// refuses its writes unless the journal's opening owns the transaction.
func (r Recorder) In(txn string) Recorder {
	r.txn, r.stream = txn, nil
	return r
}

// Watched returns a recorder that calls watch with each batch of records that
// the journal accepted. A nil watch is not called.
func (r Recorder) Watched(watch func(at time.Time, lines []CallRecord)) Recorder {
	r.watch = watch
	return r
}

// Journal returns the journal that r writes to.
func (r Recorder) Journal() journal.Journal { return r.journal }

// Host returns the host that provides time and randomness to r.
func (r Recorder) Host() Host { return r.host }

// Session returns the ID of the session.
func (r Recorder) Session() string { return r.session }

// Txn returns the ID of the transaction, or "" for a session's own stream.
func (r Recorder) Txn() string { return r.txn }

// CallRecord is one record to write.
type CallRecord struct {
	Call    string // "" for records of the transaction itself
	Txn     string // stream, if it is not the recorder's, for links between transactions
	Session string // session, if it is not the recorder's
	Body    record.Body
}

// Write holds what one step writes together.
type Write struct {
	Records []CallRecord
	Blobs   []journal.Blob
	Claims  []string
	Erase   []string // see Batch
	Take    journal.OwnerChange
	End     bool
	Durable bool
}

// Write seals the records and appends them as one batch. All have the same
// time, and each has its own salt.
func (r Recorder) Write(ctx context.Context, w Write) error {
	//mutant:barrier
	batch := journal.Batch{Blobs: w.Blobs, Claims: w.Claims, Erase: w.Erase, Take: w.Take, End: w.End, Durable: w.Durable}
	if r.txn != "" {
		//mutant:lease
		batch.Fence = journal.Ownership{Txn: r.txn, Owner: r.journal.Owner()}
	}
	now := r.host.Now()
	var named [128]byte // on the stack
	point := append(named[:0], appendPoint...)
	if len(w.Records) > 0 {
		batch.Entries = make([]record.Entry, 0, len(w.Records))
	}
	salts, done := r.drawSalts(len(w.Records))
	defer done()
	for i, l := range w.Records {
		salt := salts[i*record.SaltSize : (i+1)*record.SaltSize]
		e, err := r.seal(l, record.Header{Kind: record.KindOf(l.Body), Session: r.session, Txn: r.txn, Call: l.Call, At: now}, salt)
		if err != nil {
			return err
		}
		batch.Entries = append(batch.Entries, e)
		if record.KindOf(l.Body) != record.KindErased || i == 0 { // of which there may be many
			point = append(append(point, '.'), record.KindOf(l.Body)...)
		}
	}
	r.stream.note(w)
	var err error
	if r.stream.keepsBack() {
		err = r.stream.append(ctx, r, batch, string(point[len(appendPoint):]), w.Durable || w.End || len(w.Records) == 0 || !onlyReads(w))
	} else {
		err = r.append(ctx, batch, string(point))
	}
	if err == nil && r.watch != nil {
		r.watch(now, w.Records)
	}
	return err
}

// appendPoint begins the name of the scheduling point of a write. The kinds of
// the records follow.
const appendPoint = "journal.append"

func (r Recorder) append(ctx context.Context, b journal.Batch, point string) error {
	if err := r.host.Point(ctx, point); err != nil {
		return err
	}
	return r.journal.Append(ctx, b)
}

func (r Recorder) seal(l CallRecord, h record.Header, salt []byte) (record.Entry, error) {
	if l.Txn != "" {
		h.Txn = l.Txn
	}
	if l.Session != "" {
		h.Session = l.Session
	}
	if b, ok := l.Body.(*record.State); ok { // a session looks for its states in its own stream, also after another session's revert
		h.Session = b.Session
	}
	return record.Seal(record.Record{Header: h, Body: l.Body}, salt)
}

// fewSalts is the number of salts whose memory is used again.
const fewSalts = 4

// saltMemory reuses the memory into which salts are drawn; Seal copies them.
var saltMemory sync.Pool

// drawSalts draws the salts of n records at once. done must follow their use.
func (r Recorder) drawSalts(n int) (salts []byte, done func()) {
	if n == 0 {
		return nil, func() {}
	}
	if n > fewSalts {
		salts = make([]byte, n*record.SaltSize)
		r.host.Random(salts)
		return salts, func() {}
	}
	few, ok := saltMemory.Get().(*[fewSalts * record.SaltSize]byte)
	if !ok {
		few = new([fewSalts * record.SaltSize]byte)
	}
	salts = few[:n*record.SaltSize]
	r.host.Random(salts)
	return salts, func() {
		clear(salts) // the salt of an erased record must not stay
		saltMemory.Put(few)
	}
}
