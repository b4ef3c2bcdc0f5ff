package journalmodel_test

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

func (d *driver) randQuery() (q journal.Query) {
	r := d.r
	if r.IntN(3) == 0 {
		q.Session = d.name()
	}
	if r.IntN(3) == 0 {
		q.Txn = d.txnName()
	}
	if r.IntN(3) == 0 {
		if q.Call = d.name(); len(d.calls) > 0 && r.IntN(2) == 0 {
			q.Call = d.calls[r.IntN(len(d.calls))]
		}
	}
	if r.IntN(2) == 0 {
		all := []record.Kind{record.KindStarted, record.KindDone, record.KindRevertNote, record.KindSavepoint, record.KindFailed, record.KindChanged, record.KindCommitted, record.KindLabelled, record.KindDenied, record.KindAborted, "", "weird'kind"}
		for range 1 + r.IntN(4) {
			q.Kinds = append(q.Kinds, all[r.IntN(len(all))])
		}
	}
	if n := len(d.m.entries); r.IntN(2) == 0 && n > 0 {
		q.After = int64(r.IntN(n + 3))
		if r.IntN(2) == 0 {
			q.After = max(0, int64(n-r.IntN(30)))
		}
	}
	if r.IntN(6) == 0 {
		q.About = append(q.About, "MK"+fmt.Sprintf("%07d", r.IntN(d.markN/10+1)))
		if r.IntN(2) == 0 {
			q.About = append(q.About, "labels")
		}
		if r.IntN(6) == 0 {
			q.About = append(q.About, "")
		}
	}
	q.Newest = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		q.Limit = 1 + r.IntN(20)
		if r.IntN(4) == 0 {
			q.Limit = 1 + r.IntN(600)
		}
	}
	return q
}

func (d *driver) query(o *opening, q journal.Query) {
	d.st.queries++
	got := d.do(o, req{Op: "entries", Query: q})
	d.compare(fmt.Sprintf("query %+v by %d", q, o.slot), d.m.query(q), got.Entries, got.Err)
}

func (d *driver) compare(what string, want, got []record.Entry, err string) {
	if err != "" {
		d.failf("%s: %s", what, err)
	}
	pos := func(l []record.Entry) (out []int64) {
		for _, e := range l {
			out = append(out, e.Pos)
		}
		if len(out) > 40 {
			out = out[:40]
		}
		return
	}
	if len(want) != len(got) {
		d.failf("%s: %d entries %v, want %d %v", what, len(got), pos(got), len(want), pos(want))
		return
	}
	for i := range want {
		if !same(want[i], got[i]) {
			d.failf("%s: entry %d differs: got pos %d erased %q body %.60q leaf %s; want pos %d erased %q body %.60q leaf %s", what, i, got[i].Pos, got[i].Erased, got[i].Body, got[i].Leaf, want[i].Pos, want[i].Erased, want[i].Body, want[i].Leaf)
			return
		}
	}
}

func (d *driver) headAndAll(o *opening) {
	h := d.do(o, req{Op: "head"})
	if h.Err != "" || h.Head.Size != int64(len(d.m.entries)) || h.Head.Root != d.m.root() {
		d.failf("head %v %s; want %d:%s", h.Head, h.Err, len(d.m.entries), d.m.root())
	}
	u := d.do(o, req{Op: "unfinished"})
	if want := d.m.unfinished(); u.Err != "" || !slices.Equal(u.Unfinished, want) {
		d.failf("unfinished by %d: %v %s\nwant %v", o.slot, u.Unfinished, u.Err, want)
	}
	if n := len(d.m.hashes); n > 0 {
		var ix []int64
		for range 5 {
			ix = append(ix, int64(d.r.IntN(n)))
		}
		hs := d.do(o, req{Op: "hashes", Ix: ix})
		want, _ := d.m.ReadHashes(ix)
		if hs.Err != "" || !slices.Equal(hs.Hashes, want) {
			d.failf("hashes %v: %s", ix, hs.Err)
		}
		if bad := d.do(o, req{Op: "hashes", Ix: []int64{tlog.StoredHashCount(int64(len(d.m.entries))) + int64(d.r.IntN(3))}}); bad.Err == "" {
			d.failf("a hash that is not stored was returned")
		}
	}
}

func (d *driver) store(o *opening) {
	n := []int{0, 10, 500, 5000, 65536, 65537, 200000}[d.r.IntN(7)]
	data := []byte(pad(d.mark("MB"), max(n, 1)))
	if n == 65536 {
		data = append(data, bytes.Repeat([]byte("x"), 65536-len(data))...)
	}
	got := d.do(o, req{Op: "store", Data: data})
	if got.Err != "" {
		d.failf("store: %s", got.Err)
	}
	b := got.Blob
	if b.Inline != (len(data) <= journal.InlineMax) || b.Size != int64(len(data)) {
		d.failf("store %d bytes: %+v", len(data), b)
	}
	b.Data = data
	d.blobs = append(d.blobs, b)
}

func (d *driver) content(o *opening) {
	named := d.m.named()
	var list []wBlob
	for _, b := range d.blobs {
		if named[b.Digest] {
			list = append(list, b)
		}
	}
	if len(list) == 0 {
		return
	}
	b := list[d.r.IntN(len(list))]
	got := d.do(o, req{Op: "content", Ref: effect.BlobRef{Digest: b.Digest, Size: b.Size}})
	if got.Err != "" || !bytes.Equal(got.Data, b.Data) {
		d.failf("content %s of %d bytes (inline %v): %s, got %d bytes", b.Digest, b.Size, b.Inline, got.Err, len(got.Data))
	}
}
