package journalmodel_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// mTxn is a transaction that has an owner.
type mTxn struct {
	owner string
	ended bool
}

// model knows the contract alone.
type model struct {
	entries []record.Entry
	hashes  []tlog.Hash
	txns    map[string]mTxn
	order   []string
	claims  map[string]string
	names   [][]string      // digests that each entry names
	freed   map[string]bool // markers that must be gone after a collection
	salts   map[string]bool
	marks   [][]string          // markers in each entry
	res     map[string][]string // claims of a transaction, all time
}

func newModel() *model {
	return &model{txns: map[string]mTxn{}, claims: map[string]string{}, freed: map[string]bool{}, salts: map[string]bool{}, res: map[string][]string{}}
}

func (m *model) clone() *model {
	c := *m
	c.entries, c.hashes, c.order = slices.Clone(m.entries), slices.Clone(m.hashes), slices.Clone(m.order)
	c.txns, c.claims, c.freed, c.salts = maps.Clone(m.txns), maps.Clone(m.claims), maps.Clone(m.freed), maps.Clone(m.salts)
	c.names, c.marks, c.res = slices.Clone(m.names), slices.Clone(m.marks), maps.Clone(m.res)
	return &c
}

// ReadHashes implements tlog.HashReader.
func (m *model) ReadHashes(ix []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(ix))
	for i, x := range ix {
		if x < 0 || x >= int64(len(m.hashes)) {
			return nil, errors.New("no hash")
		}
		out[i] = m.hashes[x]
	}
	return out, nil
}

func (m *model) root() string {
	h, err := tlog.TreeHash(int64(len(m.entries)), m)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("sha256:%x", h[:])
}

// wBlob is content that was stored.
type wBlob struct {
	Digest string
	Size   int64
	Data   []byte
	Inline bool
}

// wBatch is a batch that can cross a pipe.
type wBatch struct {
	Entries []record.Entry
	Names   [][]string
	Marks   [][]string
	Blobs   []wBlob
	Durable bool
	Fence   journal.Ownership
	Take    journal.OwnerChange
	Claims  []string
	Erase   []string
	End     bool
}

// expect returns the reasons for which the batch must be refused; none if it must be stored.
func (m *model) expect(b wBatch) (why []string) {
	if b.Fence.Txn == "" && (len(b.Claims) > 0 || b.End) {
		return []string{"invalid"}
	}
	if b.Take.To.Txn != "" && b.Take.To.Owner == "" {
		return []string{"invalid"}
	}
	if slices.Contains(b.Erase, "") {
		return []string{"invalid"}
	}
	at := func(id string) (t mTxn, ok bool) { t, ok = m.txns[id]; return }
	if id := b.Take.To.Txn; id != "" {
		t, ok := at(id)
		if b.Take.From == "" && ok || b.Take.From != "" && (!ok || t.ended || t.owner != b.Take.From) {
			why = append(why, "notowner")
		}
	}
	if id := b.Fence.Txn; id != "" {
		t, ok := at(id)
		if b.Take.To.Txn == id {
			t, ok = mTxn{owner: b.Take.To.Owner}, true
		}
		if !ok || t.ended || t.owner != b.Fence.Owner {
			why = append(why, "notowner")
		}
	}
	for _, c := range b.Claims {
		if h := m.claims[c]; h != "" && h != b.Fence.Txn {
			why = append(why, "claimed")
		}
	}
	return why
}

// apply stores a batch that must be stored.
func (m *model) apply(b wBatch) {
	for _, call := range b.Erase {
		m.erase(call)
	}
	if id := b.Take.To.Txn; id != "" {
		if _, ok := m.txns[id]; !ok {
			m.order = append(m.order, id)
		}
		m.txns[id] = mTxn{owner: b.Take.To.Owner}
	}
	for _, c := range b.Claims {
		m.claims[c] = b.Fence.Txn
	}
	if len(b.Claims) > 0 {
		m.res[b.Fence.Txn] = append(slices.Clone(m.res[b.Fence.Txn]), b.Claims...)
	}
	if b.End {
		t := m.txns[b.Fence.Txn]
		t.ended = true
		m.txns[b.Fence.Txn] = t
		maps.DeleteFunc(m.claims, func(_, txn string) bool { return txn == b.Fence.Txn })
	}
	for i, e := range b.Entries {
		m.add(e, b.Names[i], b.Marks[i])
	}
}

// erase removes the bodies of a call.
func (m *model) erase(call string) {
	for i, e := range m.entries {
		if e.Header.Call != call || !e.Header.Kind.Erasable() || e.Erased != "" {
			continue
		}
		e.Erased = e.BodyDigest()
		if !bytes.Equal(e.Salt, make([]byte, 16)) {
			m.salts[string(e.Salt)] = true
		}
		e.Salt, e.Body = nil, nil
		m.entries[i] = e
		for _, k := range m.marks[i] {
			m.freed[k] = true
		}
	}
}

// add appends an entry.
func (m *model) add(e record.Entry, names, marks []string) {
	e.Pos = int64(len(m.entries)) + 1
	hs, err := tlog.StoredHashes(int64(len(m.entries)), []byte(e.Leaf), m)
	if err != nil {
		panic(err)
	}
	m.hashes = append(m.hashes, hs...)
	m.entries = append(m.entries, e)
	m.names = append(m.names, names)
	m.marks = append(m.marks, marks)
}

// named reports which blobs live entries name.
func (m *model) named() map[string]bool {
	out := map[string]bool{}
	for i, e := range m.entries {
		if e.Erased == "" {
			for _, d := range m.names[i] {
				out[d] = true
			}
		}
	}
	return out
}

func (m *model) query(q journal.Query) (out []record.Entry) {
	for _, e := range m.entries {
		if e.Pos <= q.After || q.Session != "" && e.Header.Session != q.Session || q.Txn != "" && e.Header.Txn != q.Txn || q.Call != "" && e.Header.Call != q.Call {
			continue
		}
		if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Header.Kind) {
			continue
		}
		if len(q.About) > 0 && !slices.ContainsFunc(q.About, func(s string) bool { return bytes.Contains(e.Body, []byte(s)) }) {
			continue
		}
		out = append(out, e)
	}
	if q.Newest {
		slices.Reverse(out)
	}
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return out
}

func (m *model) unfinished() (out []journal.Ownership) {
	for _, id := range m.order {
		if t := m.txns[id]; !t.ended {
			out = append(out, journal.Ownership{Txn: id, Owner: t.owner})
		}
	}
	return out
}

// same reports whether two entries are equal.
func same(a, b record.Entry) bool {
	return a.Pos == b.Pos && bytes.Equal(a.Head, b.Head) && bytes.Equal(a.Salt, b.Salt) && bytes.Equal(a.Body, b.Body) && a.Leaf == b.Leaf && a.Erased == b.Erased &&
		a.Header.Kind == b.Header.Kind && a.Header.Session == b.Header.Session && a.Header.Txn == b.Header.Txn && a.Header.Call == b.Header.Call && a.Header.At.Equal(b.Header.At)
}
