package journal

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/remit-dev/remit/revert/record"
)

// Head is the Merkle tree head over the leaves of a journal's first Size
// entries. A copy of it elsewhere shows later that none of these entries was
// changed, moved or cut off.
type Head struct {
	Size int64  `json:"size"`
	Root string `json:"root"` // sha256:… as in RFC 6962; record n is the leaf, as text, of the entry at position n+1
}

const rootPrefix = "sha256:"

// String returns the text form of a head, which ParseHead reads.
func (h Head) String() string { return strconv.FormatInt(h.Size, 10) + ":" + h.Root }

// ParseHead parses the text that Head.String returns.
func ParseHead(text string) (Head, error) {
	size, root, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(size, 10, 64)
	h := Head{Size: n, Root: root}
	if err == nil {
		_, err = h.hash()
	}
	if err != nil || h.String() != text { // one spelling, so that comparing texts compares heads
		return Head{}, fmt.Errorf("%q is not a tree head: write it as SIZE:sha256:DIGITS, as Head.String and remit fsck do", text)
	}
	return h, nil
}

// maxSize exceeds the size of any journal, and tlog can calculate with it.
const maxSize = 1 << 60

func (h Head) hash() (sum tlog.Hash, err error) {
	if h.Size < 0 || h.Size > maxSize {
		return sum, fmt.Errorf("%d is not the size of a tree", h.Size)
	}
	digits, ok := strings.CutPrefix(h.Root, rootPrefix)
	if !ok || len(digits) != 2*len(sum) {
		return sum, fmt.Errorf("%q is not the root of a tree", h.Root)
	}
	if _, err = hex.Decode(sum[:], []byte(digits)); err == nil && hex.EncodeToString(sum[:]) != digits {
		err = fmt.Errorf("%q is not the root of a tree: its digits are lower-case", h.Root)
	}
	return sum, err
}

// Tree is the part of a tree that an append needs: the roots of its complete
// subtrees, largest first. Their number is at most the logarithm of the size.
// The zero Tree is empty. Tree is a value: Add does not change it.
type Tree struct {
	size  int64
	roots []tlog.Hash
}

// Size is the number of records.
func (t Tree) Size() int64 { return t.size }

// Add returns the tree with one more leaf, and the hashes that the leaf
// completes: its own, then one for each subtree that is now complete. tlog
// stores these hashes for the record, in this order.
func (t Tree) Add(leaf string) (Tree, []tlog.Hash) { return t.AddHash(tlog.RecordHash([]byte(leaf))) }

// AddHash is Add for a leaf whose hash is known.
func (t Tree) AddHash(h tlog.Hash) (Tree, []tlog.Hash) {
	whole := []tlog.Hash{h}
	keep := len(t.roots)
	for n := t.size; n&1 == 1; n >>= 1 {
		keep--
		h = tlog.NodeHash(t.roots[keep], h)
		whole = append(whole, h)
	}
	return Tree{size: t.size + 1, roots: append(slices.Clone(t.roots[:keep]), h)}, whole
}

// Head returns the head of the tree.
func (t Tree) Head() Head {
	sum, _ := tlog.TreeHash(0, nil) // of the empty tree; reads nothing
	for i, h := range slices.Backward(t.roots) {
		if i == len(t.roots)-1 {
			sum = h
		} else {
			sum = tlog.NodeHash(h, sum)
		}
	}
	return Head{Size: t.size, Root: rootPrefix + hex.EncodeToString(sum[:])}
}

// TreeOf reads the tree of the first size records from stored hashes.
func TreeOf(size int64, stored tlog.HashReader) (Tree, error) {
	var at []int64
	for level, start := 62, int64(0); level >= 0; level-- {
		if size>>level&1 == 1 {
			at = append(at, tlog.StoredHashIndex(level, start>>level))
			start += 1 << level
		}
	}
	roots, err := stored.ReadHashes(at)
	return Tree{size: size, roots: roots}, err
}

// Proof returns the proof that the tree with the head old is a prefix of the
// tree with the head now, for CheckPrefix. It reads a logarithmic number of
// hashes from the journal.
func Proof(ctx context.Context, j Journal, old, now Head) (tlog.TreeProof, error) {
	for _, h := range []Head{old, now} {
		if _, err := h.hash(); err != nil {
			return nil, err
		}
	}
	if old.Size > now.Size {
		return nil, cutOff(old, now)
	}
	if old.Size == 0 {
		return nil, nil
	}
	read := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) { return j.Hashes(ctx, at) })
	proof, err := tlog.ProveTree(now.Size, old.Size, read)
	if err != nil {
		return nil, fmt.Errorf("prove a prefix of %d entries: %w", old.Size, err)
	}
	return proof, nil
}

// CheckPrefix returns ErrDamaged unless the proof shows that the journal with
// the head now begins with the entries of the head old. It needs no journal.
func CheckPrefix(old, now Head, proof tlog.TreeProof) error {
	was, err := old.hash()
	if err != nil {
		return err
	}
	is, err := now.hash()
	if err != nil {
		return err
	}
	if old.Size > now.Size {
		return cutOff(old, now)
	}
	if old.Size == 0 { // the empty prefix always holds, and tlog has no proof of it
		if old != (Tree{}).Head() {
			err = fmt.Errorf("%w: the head %s belongs to no tree", record.ErrDamaged, old)
		}
		return err
	}
	if err := tlog.CheckTree(proof, now.Size, is, old.Size, was); err != nil {
		return fmt.Errorf("%w: the first %d entries are not those whose head was kept: %w", record.ErrDamaged, old.Size, err)
	}
	return nil
}

func cutOff(old, now Head) error {
	return fmt.Errorf("%w: a head of %d entries was kept, and the journal has %d: its end was cut off", record.ErrDamaged, old.Size, now.Size)
}
