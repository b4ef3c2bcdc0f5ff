package origin

import "math/bits"

// filter is a set of hashes that can say "there" of one that is not, and never
// "missing" of one that is: a Bloom filter whose bits of one hash are in one
// cache line (Putze, Sanders and Singler, 2007). It grows by further parts. A
// hash that is missing is taken for one that is there with a probability below
// 1 %, as TestFilter measures.
type filter struct {
	parts []part // the last one takes new hashes
	full  bool   // everything counts as there
}

type part struct {
	lines []line
	room  int // hashes that it still takes
}

type line [8]uint64

// Bounds of a filter: lines of its first part, and of all parts together (64
// bytes each).
const (
	firstLines = 1 << 8
	mostLines  = 1 << 18
	perLine    = 32 // hashes, so 16 bits for each
)

func (f *filter) add(hash uint64) {
	if f.full || f.has(hash) {
		return
	}
	if n := len(f.parts); n == 0 || f.parts[n-1].room == 0 {
		lines := firstLines
		if n > 0 {
			lines = 4 * len(f.parts[n-1].lines)
		}
		if lines > mostLines {
			f.full, f.parts = true, nil
			return
		}
		f.parts = append(f.parts, part{lines: make([]line, lines), room: lines * perLine})
	}
	p := &f.parts[len(f.parts)-1]
	p.room--
	l := &p.lines[hash>>32&uint64(len(p.lines)-1)]
	for i, mask := range masks(hash) {
		l[i] |= mask
	}
}

func (f *filter) has(hash uint64) bool {
	if f.full {
		return true
	}
	m := masks(hash)
	for i := range f.parts {
		if f.parts[i].has(hash, &m) {
			return true
		}
	}
	return false
}

func (p *part) has(hash uint64, m *line) bool {
	l := &p.lines[hash>>32&uint64(len(p.lines)-1)]
	for i, mask := range m {
		if l[i]&mask != mask {
			return false
		}
	}
	return true
}

// masks returns the bits of a hash: one in each of eight words.
func masks(hash uint64) (m line) {
	h := mix(hash)
	for i := range m {
		m[i] = 1 << (h >> (8 * i) & 63)
	}
	return m
}

// mix spreads the bits of a hash (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// scan calls each for the hash of every word of a text, and for the hash of
// every two words that follow each other. Words are letters, digits and bytes
// beyond ASCII, and letters of ASCII have no case. In JSON, an escape separates.
func scan(text []byte, json bool, each func(hash uint64)) {
	const offset, prime = 0xcbf29ce484222325, 0x100000001b3
	hash, last := uint64(offset), uint64(0)
	end := func() {
		if hash == offset {
			return
		}
		each(mix(hash))
		if last != 0 {
			each(pair(last, hash))
		}
		last, hash = hash, offset
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if folded[c] != 0 {
			hash = (hash ^ uint64(folded[c])) * prime
			continue
		}
		end()
		if json && c == '\\' && i+1 < len(text) {
			if i++; text[i] == 'u' {
				i = min(i+4, len(text)-1)
			}
		}
	}
	end()
}

// pair returns the hash of two words that follow each other.
func pair(first, second uint64) uint64 {
	return mix(bits.RotateLeft64(first, 23) ^ second*0x9e3779b97f4a7c15)
}

// folded maps the bytes of words to their form without case, and others to 0.
var folded = func() (t [256]byte) {
	for c := range t {
		switch {
		case c >= 0x80 || isAlnum(byte(c)):
			if t[c] = byte(c); 'A' <= c && c <= 'Z' {
				t[c] += 'a' - 'A'
			}
		}
	}
	return t
}()

// hashes returns what a filter has of a text that it contains: its words, or
// the pairs of them.
func hashes(text string) []uint64 {
	var words, pairs []uint64
	n := 0
	scan([]byte(text), false, func(hash uint64) {
		// After the first word each word comes with its pair.
		if n++; n == 1 || n%2 == 0 {
			words = append(words, hash)
		} else {
			pairs = append(pairs, hash)
		}
	})
	if len(pairs) > 0 {
		return pairs
	}
	return words
}

// contains reports whether the filter can have been given a text.
func (f *filter) contains(text string) bool {
	all := hashes(text)
	for _, hash := range all {
		if !f.has(hash) {
			return false
		}
	}
	return len(all) > 0
}
