package canon

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
)

// Digest is "sha256:" and 64 lower case hex digits. Digests are equal exactly when their texts are.
type Digest string

const digestPrefix = "sha256:"

// Valid reports whether the digest is spelled in the one way that [Sum] and [SumBytes] spell it.
func (d Digest) Valid() bool {
	digits, ok := strings.CutPrefix(string(d), digestPrefix)
	if !ok || len(digits) != 2*sha256.Size {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// Sum digests a list of parts under a domain tag: SHA-256 over the length of the domain as eight bytes, big endian, the
// domain, then for each part its length likewise and its bytes. So ("ab", "c") and ("a", "bc") differ, and a digest made for
// one purpose never stands for another as long as each purpose has its own domain.
func Sum(domain string, parts ...[]byte) Digest {
	h := sha256.New()
	buf := binary.BigEndian.AppendUint64(make([]byte, 0, 64), uint64(len(domain)))
	_, _ = h.Write(append(buf, domain...)) // a hash never returns an error
	for _, part := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(len(part))))
		_, _ = h.Write(part)
	}
	return spell(h.Sum(buf[:0]))
}

// SumBytes is the plain SHA-256 of content, as sha256sum computes it.
func SumBytes(data []byte) Digest {
	sum := sha256.Sum256(data)
	return spell(sum[:])
}

func spell(sum []byte) Digest {
	text := make([]byte, 0, len(digestPrefix)+2*sha256.Size)
	text = append(text, digestPrefix...)
	return Digest(hex.AppendEncode(text, sum))
}

// Hash computes [SumBytes] of what is written to it, for content that is not held in memory. Make it with [NewHash]; it is
// for one goroutine at a time.
type Hash struct {
	sum  hash.Hash
	size int64
}

// NewHash returns a Hash of no content yet.
func NewHash() *Hash { return &Hash{sum: sha256.New()} }

// Write adds content. It never returns an error.
func (h *Hash) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	return h.sum.Write(p)
}

// Size returns the number of bytes written so far.
func (h *Hash) Size() int64 { return h.size }

// Digest returns the digest of all content written so far; more may follow.
func (h *Hash) Digest() Digest { return spell(h.sum.Sum(nil)) }
