package sqlite

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// A batch is stored as one row, so that an append writes one place of the file.
// Its key orders it: the position of its first entry, and a number that
// distinguishes it from batches without entries before it.
//
//	key  = position << 24 | number
//	data = version, checksum, directory, front, bodies, hashes
//
// The directory says what the batch does to transactions, and repeats the names
// in the headers of its entries. Its checksum covers it, so it can be trusted
// without the rest. The front has, for each entry, the header, the leaf and the
// lengths of salt and body. The bodies follow with their salts, and then the
// hashes of the tree that the entries complete. Leaves check the entries, and
// the head checks the hashes.

const (
	batchVersion = 1
	numberBits   = 24
	maxPos       = 1 << (63 - numberBits)
)

var checksum = crc32.MakeTable(crc32.Castagnoli)

// batchKey orders the batches.
type batchKey int64

func (k batchKey) pos() int64 { return int64(k) >> numberBits }

// keyAt returns the first key of a batch whose first entry has a position. It is
// greater than the keys of all batches that begin before.
func keyAt(pos int64) batchKey { return batchKey(pos << numberBits) }

// next returns the key of the batch that follows one of n entries.
func (k batchKey) next(n int64) (batchKey, error) {
	next := k + 1
	if n > 0 {
		next = keyAt(k.pos() + n)
	}
	if n == 0 && next.pos() != k.pos() || next.pos() >= maxPos {
		return 0, errors.New("journal: no number is left for another batch")
	}
	return next, nil
}

// batchOps is what a batch does to transactions, apart from its claims: an
// erasure must be able to destroy these.
type batchOps struct {
	take journal.OwnerChange
	end  string // the transaction that it ends
}

func opsOf(b journal.Batch) batchOps {
	o := batchOps{take: b.Take}
	if b.End {
		o.end = b.Fence.Txn
	}
	return o
}

// none reports whether the batch changes no transaction.
func (o batchOps) none() bool { return o.take.To.Txn == "" && o.end == "" }

// storedBatch is a batch as it was read.
type storedBatch struct {
	key     batchKey
	ops     batchOps
	entries []packedEntry
	hashes  []byte // of the tree
	bad     error  // ops and names are not reliable: each entry must be checked to know where it belongs
	lost    error  // why no entry can be read
	size    int    // of the row
}

// names are what the directory repeats of a header.
type names struct {
	kind               record.Kind
	session, txn, call string
}

func headerNames(h record.Header) names { return names{h.Kind, h.Session, h.Txn, h.Call} }

// packedEntry has the parts of an entry in the row of its batch.
type packedEntry struct {
	names
	head, leaf, salt, body, erased []byte
}

// entry returns the entry at an index, unchecked.
func (b *storedBatch) entry(i int) record.Entry {
	p := b.entries[i]
	return record.Entry{Pos: b.key.pos() + int64(i), Head: p.head, Salt: p.salt, Body: p.body, Leaf: digestOf(p.leaf), Erased: digestOf(p.erased)}
}

// checked checks the entry at an index and its repeated names.
func (b *storedBatch) checked(i int) (record.Entry, error) {
	e := b.entry(i)
	if b.lost != nil {
		return record.Entry{Pos: e.Pos}, fmt.Errorf("entry %d cannot be read: %w", e.Pos, b.lost)
	}
	e, err := e.Checked()
	//mutant:check
	if err == nil && b.bad == nil && headerNames(e.Header) != b.entries[i].names {
		return record.Entry{Pos: e.Pos}, fmt.Errorf("%w: entry %d is stored under another header", record.ErrDamaged, e.Pos)
	}
	return e, err
}

// The flags of a batch and of an entry.
const (
	flagTake = 1 << iota
	flagEnd
)

const flagErased = 1

// pack encodes a batch without the hashes of the tree, which depend on the
// batches before it.
func pack(ops batchOps, entries []record.Entry) []byte {
	size, front := 256, 0
	for _, e := range entries {
		front += len(e.Head) + 64
		size += len(e.Salt) + len(e.Body) + 96 // with its hashes of the tree, mostly
	}
	packed := make([]byte, 0, front)
	for _, e := range entries {
		packed = packEntry(packed, e)
	}
	directory := packDirectory(ops, entries)
	out := append(make([]byte, 0, size+front), batchVersion)
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(directory, checksum))
	out = appendText(appendText(out, directory), packed)
	for _, e := range entries {
		out = append(append(out, e.Salt...), e.Body...)
	}
	return out
}

// packDirectory encodes each name once.
func packDirectory(ops batchOps, entries []record.Entry) []byte {
	out := packOps(make([]byte, 0, 128), ops)
	table := []string{""}
	var refs []byte
	ref := func(name string) {
		i := slices.Index(table, name)
		if i < 0 {
			i, table = len(table), append(table, name)
		}
		refs = binary.AppendUvarint(refs, uint64(i))
	}
	for _, e := range entries {
		h := e.Header
		for _, name := range []string{string(h.Kind), h.Session, h.Txn, h.Call} {
			ref(name)
		}
	}
	out = binary.AppendUvarint(out, uint64(len(table)-1))
	for _, name := range table[1:] {
		out = appendText(out, name)
	}
	return append(binary.AppendUvarint(out, uint64(len(entries))), refs...)
}

func packOps(out []byte, ops batchOps) []byte {
	flags := byte(0)
	if ops.take.To.Txn != "" {
		flags |= flagTake
	}
	if ops.end != "" {
		flags |= flagEnd
	}
	out = append(out, flags)
	if flags&flagTake != 0 {
		for _, s := range []string{ops.take.From, ops.take.To.Txn, ops.take.To.Owner} {
			out = appendText(out, s)
		}
	}
	if flags&flagEnd != 0 {
		out = appendText(out, ops.end)
	}
	return out
}

func packEntry(out []byte, e record.Entry) []byte {
	flags := byte(0)
	if e.Erased != "" {
		flags |= flagErased
	}
	out = append(out, flags)
	out = appendText(out, e.Head)
	out = appendText(out, stored(e.Leaf))
	if e.Erased != "" {
		return appendText(out, stored(e.Erased))
	}
	out = binary.AppendUvarint(out, uint64(len(e.Salt)))
	return binary.AppendUvarint(out, uint64(len(e.Body)))
}

func appendText[T string | []byte](out []byte, text T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// errShort says that a row ends too early.
var errShort = errors.New("it ends too early")

// cursor reads the parts of a row. After an error it returns nothing.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) number() uint64 {
	n, size := binary.Uvarint(c.rest)
	if size <= 0 {
		c.fail(errShort)
		return 0
	}
	c.rest = c.rest[size:]
	return n
}

func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.fail(errShort)
		return nil
	}
	out := c.rest[:n:n]
	c.rest = c.rest[n:]
	return out
}

func (c *cursor) text() []byte { return c.bytes(c.number()) }

func (c *cursor) flags() byte {
	if b := c.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err, c.rest = err, nil
	}
}

// unpack splits a row of n entries into its parts.
func unpack(key batchKey, n int64, data []byte) *storedBatch {
	b := &storedBatch{key: key, size: len(data)}
	c := cursor{rest: data}
	if version := c.flags(); c.err == nil && version != batchVersion {
		c.fail(fmt.Errorf("it has version %d", version))
	}
	sum := c.bytes(4)
	directory, front := cursor{rest: c.text()}, cursor{rest: c.text()}
	//mutant:check
	if len(sum) == 4 && binary.LittleEndian.Uint32(sum) != crc32.Checksum(directory.rest, checksum) {
		b.bad = errors.New("its directory does not fit its checksum")
	}
	b.ops = directory.ops()
	b.entries = directory.names()
	err := cmp.Or(c.err, directory.err)
	if err == nil && int64(len(b.entries)) != n {
		err = fmt.Errorf("it has %d entries, and %d are counted", len(b.entries), n)
	}
	if b.bad = cmp.Or(b.bad, err); b.bad != nil {
		b.bad = fmt.Errorf("%w: the batch of entry %d: %w", record.ErrDamaged, key.pos(), b.bad)
	}
	if err != nil {
		b.lost, b.entries = b.bad, make([]packedEntry, min(max(n, 1), lostMax))
		return b
	}
	for i := range b.entries {
		front.entry(&c, &b.entries[i])
	}
	if b.hashes = c.rest; front.err != nil || c.err != nil {
		b.lost = fmt.Errorf("%w: the batch of entry %d: %w", record.ErrDamaged, key.pos(), cmp.Or(front.err, c.err))
	}
	return b
}

// lostMax bounds the entries of a damaged count.
const lostMax = 1 << 16

func (c *cursor) ops() (o batchOps) {
	flags := c.flags()
	if flags&flagTake != 0 {
		o.take = journal.OwnerChange{From: string(c.text()), To: journal.Ownership{Txn: string(c.text()), Owner: string(c.text())}}
	}
	if flags&flagEnd != 0 {
		o.end = string(c.text())
	}
	return o
}

// names returns an entry for each header that the directory describes.
func (c *cursor) names() []packedEntry {
	table := make([]string, 1, 8)
	for n := c.number(); n > 0 && c.err == nil; n-- {
		table = append(table, string(c.text()))
	}
	ref := func() string {
		i := c.number()
		if i >= uint64(len(table)) {
			c.fail(errShort)
			return ""
		}
		return table[i]
	}
	n := c.number()
	if n > uint64(len(c.rest)) {
		c.fail(errShort)
		return nil
	}
	entries := make([]packedEntry, n)
	for i := range entries {
		entries[i].names = names{record.Kind(ref()), ref(), ref(), ref()}
	}
	return entries
}

// entry reads the parts of an entry, and its body from another cursor.
func (c *cursor) entry(body *cursor, p *packedEntry) {
	flags := c.flags()
	p.head, p.leaf = c.text(), c.text()
	if flags&flagErased != 0 {
		p.erased = c.text()
		return
	}
	salt, size := c.number(), c.number()
	p.salt, p.body = body.bytes(salt), body.bytes(size)
}

// pack encodes a batch again, with its hashes.
func (b *storedBatch) pack() []byte {
	entries := make([]record.Entry, len(b.entries))
	for i, p := range b.entries {
		entries[i] = b.entry(i)
		entries[i].Header = record.Header{Kind: p.kind, Session: p.session, Txn: p.txn, Call: p.call}
	}
	return append(pack(b.ops, entries), b.hashes...)
}

// last is the position of the last entry, or of the one before a batch without
// entries.
func (b *storedBatch) last() int64 { return b.key.pos() + int64(len(b.entries)) - 1 }

// hash returns the hash of a subtree that the entry at a position completes.
// That of the leaf itself, level 0, is not stored.
func (b *storedBatch) hash(pos int64, level int) (h tlog.Hash, err error) {
	if b.lost != nil {
		return h, b.lost
	}
	if level == 0 {
		return tlog.RecordHash([]byte(b.entry(int(pos - b.key.pos())).Leaf)), nil
	}
	before := completed(pos-1) - completed(b.key.pos()-1)
	from := (before + level - 1) * tlog.HashSize
	if from+tlog.HashSize > len(b.hashes) {
		return h, fmt.Errorf("%w: entry %d lacks hashes of the tree", record.ErrDamaged, pos)
	}
	return tlog.Hash(b.hashes[from : from+tlog.HashSize]), nil
}

// completed returns how many subtrees above leaves the first n entries complete.
func completed(n int64) int { return int(n) - bits.OnesCount64(uint64(n)) }

// places returns the places of the batch, with the kinds of entry of each.
func (b *storedBatch) places() map[string]int64 {
	places := map[string]int64{}
	for _, p := range b.entries {
		addPlaces(places, p.names)
	}
	return places
}

func placesOf(entries []record.Entry) map[string]int64 {
	places := map[string]int64{}
	for _, e := range entries {
		addPlaces(places, headerNames(e.Header))
	}
	return places
}

func addPlaces(places map[string]int64, n names) {
	set := kindSet(n.kind)
	for _, name := range []string{placeOf(bySession, n.session), placeOf(byTxn, n.txn), placeOf(byCall, n.call)} {
		if len(name) > 1 {
			places[name] |= set
		}
	}
	if !notIndexed(n.kind) {
		places[placeOf(byKind, string(n.kind))] |= set
	}
}

// in reports whether a place has such an entry.
func (n names) in(place string) bool {
	switch name := place[1:]; place[0] {
	case byKind:
		return string(n.kind) == name
	case bySession:
		return n.session == name
	case byTxn:
		return n.txn == name
	default:
		return n.call == name
	}
}

// The first letter of a place says what the rest names.
const (
	byKind    = 'k'
	bySession = 's'
	byTxn     = 't'
	byCall    = 'c'
)

// holes is the place of the batches that lost bodies and were not stored again.
const holes = "!"

func placeOf(what byte, name string) string { return string(what) + name }

// kindSet returns a set of kinds. Two kinds can have the same bit: then a query
// reads a batch in vain.
func kindSet(kinds ...record.Kind) (set int64) {
	for _, k := range kinds {
		set |= 1 << (crc32.Checksum([]byte(k), checksum) % 62)
	}
	return set
}
