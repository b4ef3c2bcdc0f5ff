package canon

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/remit-dev/remit/internal/sparse"
)

// Digest is "sha256:" and 64 lower case hex digits. Digests are equal exactly when their texts are.
type Digest string

const digestPrefix = "sha256:"

// Valid reports whether the digest is spelled as [Sum] and [SumBytes] spell it.
func (d Digest) Valid() bool {
	digits, ok := strings.CutPrefix(string(d), digestPrefix)
	if !ok || len(digits) != 2*sha256.Size {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// Sum digests a list of parts under a domain tag: SHA-256 over the length of
// the domain as eight bytes, big endian, the domain, then for each part its
// length in the same form and its bytes. So ("ab", "c") and ("a", "bc") differ.
// A digest for one purpose never equals one for another if each purpose has its
// own domain.
func Sum(domain string, parts ...[]byte) Digest {
	sum := hashed(domain, parts)
	return spell(sum[:])
}

// AppendSum appends the text of a digest; see [Sum].
func AppendSum(dst []byte, domain string, parts ...[]byte) []byte {
	sum := hashed(domain, parts)
	return hex.AppendEncode(append(dst, digestPrefix...), sum[:])
}

func hashed(domain string, parts [][]byte) [sha256.Size]byte {
	size := 8 + len(domain)
	for _, part := range parts {
		size += 8 + len(part)
	}
	if size > smallSum {
		return hashedLarge(domain, parts)
	}
	var small [smallSum]byte // on the stack
	return sha256.Sum256(appendSummed(small[:0], domain, parts))
}

// smallSum is the size up to which the input of a digest is hashed in one call.
// Most inputs are smaller, and each call of a hash costs as much as its data.
const smallSum = 1 << 10

// appendSummed writes what Sum digests.
func appendSummed(dst []byte, domain string, parts [][]byte) []byte {
	dst = append(binary.BigEndian.AppendUint64(dst, uint64(len(domain))), domain...)
	for _, part := range parts {
		dst = append(binary.BigEndian.AppendUint64(dst, uint64(len(part))), part...)
	}
	return dst
}

func hashedLarge(domain string, parts [][]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	buf := appendSummed(make([]byte, 0, 64), domain, nil)
	_, _ = h.Write(buf) // a hash never returns an error
	for _, part := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(len(part))))
		_, _ = h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// SumBytes returns the digest of content, as [Hash] computes it.
func SumBytes(data []byte) Digest {
	if len(data) < sparse.Block {
		sum := sha256.Sum256(data)
		return spell(sum[:])
	}
	h := NewHash()
	_, _ = h.Write(data) // a hash never returns an error
	return h.Digest()
}

func spell(sum []byte) Digest {
	var text [len(digestPrefix) + 2*sha256.Size]byte // on the stack
	copy(text[:], digestPrefix)
	hex.Encode(text[len(digestPrefix):], sum)
	return Digest(text[:])
}

// sparseTag follows the first block of zeros in the hash input of content with
// blocks of zeros.
const sparseTag = "remit/sparse-content/v1"

// Hash computes the digest of content that is not in memory. [NewHash] returns
// one. A Hash is not safe for concurrent use.
//
// Hash splits content into blocks of 4096 bytes from its beginning. If no block
// holds only zeros, the digest is the SHA-256 of the content, as sha256sum
// computes it. Otherwise it is the SHA-256 of
//
//	4096 zeros, "remit/sparse-content/v1",
//	for each run of blocks of zeros: its offset and its length in bytes, as eight bytes each, big endian,
//	the SHA-256 of all other bytes in their order
//
// So a reader can skip blocks of zeros that the file system knows, and content
// has one digest for every way to store it. No two contents share a hash input:
// the second kind begins with a block of zeros, which content of the first kind
// never has.
type Hash struct {
	to   parts
	in   *sparse.Writer
	size int64
	end  Digest // set when it was requested
}

// parts splits content.
type parts struct {
	data hash.Hash // of all but blocks of zeros
	runs hash.Hash // of their positions; nil: there are none
	at   int64
}

func (p *parts) Write(b []byte) (int, error) {
	p.at += int64(len(b))
	return p.data.Write(b)
}

func (p *parts) Skip(n int64) error {
	if p.runs == nil {
		p.runs = sha256.New()
		_, _ = p.runs.Write(append(make([]byte, sparse.Block), sparseTag...)) // a hash never returns an error
	}
	run := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(p.at))
	_, _ = p.runs.Write(binary.BigEndian.AppendUint64(run, uint64(n)))
	p.at += n
	return nil
}

// NewHash returns a Hash of empty content.
func NewHash() *Hash {
	h := &Hash{to: parts{data: sha256.New()}}
	h.in = sparse.NewWriter(&h.to)
	return h
}

// Write adds content. It never returns an error.
func (h *Hash) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	return h.in.Write(p)
}

// Skip adds n zeros. It never returns an error.
func (h *Hash) Skip(n int64) error {
	h.size += n
	return h.in.Skip(n)
}

// Size returns the number of bytes added so far.
func (h *Hash) Size() int64 { return h.size }

// Digest returns the digest of all added content. Do not add content after it.
func (h *Hash) Digest() Digest {
	if h.end != "" {
		return h.end
	}
	_ = h.in.End() // a hash never returns an error
	sum := h.to.data.Sum(nil)
	if h.to.runs != nil {
		_, _ = h.to.runs.Write(sum)
		sum = h.to.runs.Sum(nil)
	}
	h.end = spell(sum)
	return h.end
}
