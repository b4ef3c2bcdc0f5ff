package journalmodel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// odd are names that a query must treat as text.
var odd = []string{"", "a", "'; DROP TABLE batches;--", "\"q\"", "ünïcödé-日本", strings.Repeat("long", 300), "%_?", " ", "\n\t", "k", "sx", "tx", "cx", "e\u0301", "é", "NULL", "0", "-1", "1e5", "\u0000nul\u0000x", "A", "a "}

// mark returns a text that is nowhere else.
func (d *driver) mark(p string) string {
	d.markN++
	return fmt.Sprintf("%s%08d%08x", p, d.markN, d.r.Uint32())
}

func (d *driver) name() string {
	if d.r.IntN(3) == 0 {
		return odd[d.r.IntN(len(odd))]
	}
	return fmt.Sprintf("n%d", d.r.IntN(8))
}

func (d *driver) callName() string {
	switch d.r.IntN(4) {
	case 0:
		return d.name()
	case 1:
		if len(d.calls) > 0 {
			return d.calls[d.r.IntN(len(d.calls))]
		}
	}
	c := fmt.Sprintf("c%d", d.r.IntN(1<<30))
	d.calls = append(d.calls, c)
	return c
}

func (d *driver) txnName() string {
	if len(d.m.order) > 0 && d.r.IntN(3) > 0 {
		return d.m.order[max(0, len(d.m.order)-1-d.r.IntN(12))]
	}
	return d.name()
}

// pad returns about n bytes that repeat a mark.
func pad(mark string, n int) string { return strings.Repeat(mark+".", max(1, n/(len(mark)+1))) }

// entry returns an entry of a transaction, the content that it names, and its
// marks.
func (d *driver) entry(txn string) (record.Entry, []string, []string) {
	mk := d.mark("MK")
	size := []int{1, 30, 100, 500, 3000}[d.r.IntN(5)]
	if d.r.IntN(1500) == 0 {
		size = 1 << 20
	}
	if d.r.IntN(40) == 0 {
		size = 20000 + d.r.IntN(60000)
	}
	kind, body, names := d.body(mk, pad(mk, size))
	salt := make([]byte, 16)
	for i := range salt {
		salt[i] = byte(d.r.Uint32())
	}
	d.at++
	h := record.Header{Kind: kind, Session: d.name(), Txn: txn, Call: d.callName(), At: time.Unix(1_700_000_000+d.at, 0)}
	e, err := record.Seal(record.Record{Header: h, Body: body}, salt)
	if err != nil {
		h.Session, h.Txn, h.Call = "s", "t", "c"
		if e, err = record.Seal(record.Record{Header: h, Body: body}, salt); err != nil {
			panic(err)
		}
	}
	return e, names, []string{mk}
}

// body returns the kind and body of an entry, and the content that it names.
func (d *driver) body(mk, text string) (kind record.Kind, body record.Body, names []string) {
	js, _ := json.Marshal(map[string]string{"m": text})
	switch d.r.IntN(11) {
	case 0:
		kind, body = record.KindStarted, &record.Started{Key: text, Input: json.RawMessage("{}"), Decision: json.RawMessage("{}")}
	case 1:
		kind, body = record.KindDone, &record.Done{Output: js}
	case 2, 3:
		kind, body = record.KindRevertNote, &record.RevertNote{Key: mk, Value: js}
	case 4:
		kind, body = record.KindSavepoint, &record.Savepoint{Name: text}
	case 5:
		kind, body = record.KindFailed, &record.Failed{Why: text}
	case 6, 7:
		ch := effect.Change{N: 1, Scheme: "s", Resource: text, Kind: "write", Pre: "p"}
		for range d.r.IntN(3) {
			if len(d.blobs) > 0 {
				b := d.blobs[len(d.blobs)-1-d.r.IntN(min(6, len(d.blobs)))]
				ch.Blobs = append(ch.Blobs, effect.BlobRef{Digest: b.Digest, Size: b.Size})
				names = append(names, b.Digest)
			}
		}
		kind, body = record.KindChanged, &record.Changed{Change: ch}
	case 8:
		kind, body = record.KindCommitted, &record.Committed{}
	case 9:
		kind, body = record.KindLabelled, &record.Labelled{Labels: []string{text}}
	case 10:
		kind, body = record.KindDenied, &record.Denied{Key: text, Input: json.RawMessage("{}"), Decision: json.RawMessage("{}"), Why: mk}
	}
	return kind, body, names
}

// batch returns a batch with n entries; negative: any number.
func (d *driver) batch(o *opening, n int) wBatch {
	b := wBatch{Durable: d.r.IntN(6) == 0}
	txn := d.ownership(o, &b)
	if b.Fence.Txn != "" {
		for range max(0, d.r.IntN(5)-1) {
			b.Claims = append(b.Claims, d.claim())
		}
		b.End = d.r.IntN(4) == 0
	} else if d.r.IntN(60) == 0 {
		b.End = true // invalid
	}
	if d.r.IntN(12) == 0 && len(d.calls) > 0 {
		b.Erase = d.erasures()
	}
	if n < 0 {
		n = []int{0, 1, 1, 1, 2, 3, 4}[d.r.IntN(7)]
		if d.r.IntN(300) == 0 {
			n = 50 + d.r.IntN(300)
		}
	}
	used := map[string]bool{}
	for range n {
		e, names, marks := d.entry(txn)
		b.Entries, b.Names, b.Marks = append(b.Entries, e), append(b.Names, names), append(b.Marks, marks)
		for _, x := range names {
			used[x] = true
		}
	}
	for _, x := range d.blobs {
		if used[x.Digest] {
			b.Blobs = append(b.Blobs, x)
			delete(used, x.Digest)
		}
	}
	return b
}

// ownership sets what a batch takes and requires, rightly or wrongly, and
// returns its transaction.
func (d *driver) ownership(o *opening, b *wBatch) (txn string) {
	switch x := d.r.IntN(20); {
	case x < 5: // begin
		id := fmt.Sprintf("t_%d", d.r.IntN(1<<30))
		if d.r.IntN(6) == 0 {
			id = d.txnName()
		}
		if id != "" {
			b.Take = journal.OwnerChange{To: journal.Ownership{Txn: id, Owner: o.owner}}
			if d.r.IntN(3) > 0 {
				b.Fence = b.Take.To
			}
		}
		txn = id
	case x < 7: // adopt, maybe wrongly
		txn = d.txnName()
		t := d.m.txns[txn]
		from := t.owner
		if d.r.IntN(5) == 0 && len(d.dead) > 0 {
			from = d.dead[d.r.IntN(len(d.dead))]
		}
		b.Take = journal.OwnerChange{From: from, To: journal.Ownership{Txn: txn, Owner: o.owner}}
		if d.r.IntN(2) == 0 {
			b.Fence = b.Take.To
		}
	case x < 9: // fence of anyone
		txn = d.txnName()
		b.Fence = journal.Ownership{Txn: txn, Owner: d.m.txns[txn].owner}
		if d.r.IntN(2) == 0 {
			b.Fence.Owner = o.owner
		}
	case x < 17:
		if m := d.heldBy(o.owner); len(m) > 0 {
			txn = m[d.r.IntN(len(m))]
			b.Fence = journal.Ownership{Txn: txn, Owner: o.owner}
		}
	default:
		txn = d.txnName()
	}
	return txn
}

// heldBy returns the open transactions of an owner.
func (d *driver) heldBy(owner string) (out []string) {
	for _, id := range d.m.order {
		if t := d.m.txns[id]; !t.ended && t.owner == owner {
			out = append(out, id)
		}
	}
	return out
}

// claim returns a name to claim: new, held or odd.
func (d *driver) claim() string {
	switch d.r.IntN(8) {
	case 0:
		return odd[d.r.IntN(len(odd))]
	case 1:
		if held := slices.Sorted(maps.Keys(d.m.claims)); len(held) > 0 {
			return held[d.r.IntN(len(held))]
		}
		return ""
	case 2:
		return fmt.Sprintf("file:///shared/%d", d.r.IntN(10))
	}
	return fmt.Sprintf("file:///%d/%s", d.r.IntN(1000), pad(d.mark("MC"), []int{1, 60, 300}[d.r.IntN(3)]))
}

// erasures returns calls to erase.
func (d *driver) erasures() (out []string) {
	for range 1 + d.r.IntN(3) {
		from := 0
		if d.r.IntN(2) == 0 {
			from = max(0, len(d.calls)-8)
		}
		if c := d.calls[from+d.r.IntN(len(d.calls)-from)]; c != "" {
			out = append(out, c)
		}
	}
	if d.r.IntN(10) == 0 {
		out = append(out, odd[1+d.r.IntN(len(odd)-1)])
	}
	return out
}
