package origin

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"strings"
)

// filter is a set of hashes that can say "there" of one that is not, and never
// "missing" of one that is: a Bloom filter whose bits of one hash are in one
// cache line (Putze, Sanders and Singler, 2007). It grows by further parts. A
// hash that is missing is taken for one that is there with a probability below
// 1 %, as TestFilter measures.
type filter struct {
	parts []part   // the last one takes new hashes
	full  bool     // everything counts as there
	last  []uint64 // added lately: most words of a text come again
	most  int      // bound of the lines of a part; 0: mostLines
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
	if f.full {
		return
	}
	if f.last == nil {
		f.last = make([]uint64, 1<<12)
	}
	last := &f.last[hash&(1<<12-1)]
	if *last == hash {
		return
	}
	if *last = hash; f.has(hash) {
		return
	}
	if n := len(f.parts); n == 0 || f.parts[n-1].room == 0 {
		lines := firstLines
		if n > 0 {
			lines = 4 * len(f.parts[n-1].lines)
		}
		if lines > cmp.Or(f.most, mostLines) {
			f.full, f.parts = true, nil
			return
		}
		f.parts = append(f.parts, part{lines: make([]line, lines), room: lines * perLine})
	}
	p := &f.parts[len(f.parts)-1]
	p.room--
	l, m := &p.lines[hash>>32&uint64(len(p.lines)-1)], mix(hash)
	for i := range masks {
		word, bit := bitOf(m, i)
		l[word] |= bit
	}
}

func (f *filter) has(hash uint64) bool {
	if f.full {
		return true
	}
	m := mix(hash)
	for i := len(f.parts) - 1; i >= 0; i-- { // the largest one first
		if f.parts[i].has(hash, m) {
			return true
		}
	}
	return false
}

func (p *part) has(hash, m uint64) bool {
	l := &p.lines[hash>>32&uint64(len(p.lines)-1)]
	for i := range masks {
		if word, bit := bitOf(m, i); l[word]&bit == 0 {
			return false
		}
	}
	return true
}

// masks is how many bits a hash has.
const masks = 7

// bitOf returns the word and the bit in it of one of the bits of a hash.
func bitOf(m uint64, i int) (word, bit uint64) {
	m >>= 9 * i
	return m & 7, 1 << (m >> 3 & 63)
}

// mix spreads the bits of a hash (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// noCase makes letters of ASCII lower case, and changes no digit. Other bytes can
// become equal, so that more counts as seen.
const noCase = 0x2020202020202020

// hashWord returns the hash of a word, eight bytes at a time.
func hashWord(word []byte) uint64 {
	hash := uint64(len(word))*0x9e3779b97f4a7c15 + 1
	for ; len(word) >= 8; word = word[8:] {
		hash = bits.RotateLeft64((hash^(binary.LittleEndian.Uint64(word)|noCase))*0xff51afd7ed558ccd, 29)
	}
	rest := uint64(0)
	for i, c := range word {
		rest |= uint64(c|0x20) << (8 * i)
	}
	return mix(hash ^ rest)
}

// together returns the hash of words without what was between them. It is not
// that of one word: 18.64 is not 1864.
func together(words []byte) uint64 { return mix(hashWord(words) ^ 0x5851f42d4c957f2d) }

// pair returns the hash of two words that follow each other.
func pair(first, second uint64) uint64 {
	return mix(bits.RotateLeft64(first, 23) ^ second*0x9e3779b97f4a7c15)
}

// contains reports whether the filter can have been given a text: its words, or
// the same letters and digits with others between them. The digits of a short
// number are taken as they stand.
func (f *filter) contains(text string, exactly bool) bool {
	some, all := false, true
	s := scanner{each: func(hash uint64) { some, all = true, all && f.has(hash) }, plain: true}
	s.scan([]byte(text), false)
	if all || !some {
		return some
	}
	letters := bare(text)
	if exactly && len(letters) < leastAccount {
		return false
	}
	return f.has(together([]byte(letters))) || f.has(hashWord([]byte(letters)))
}

// has reports whether a filter can have been given a value: a number in any of
// the ways in which people write it.
func has(f *filter, value string) bool {
	n, is := number(value)
	if f.contains(value, is) {
		return true
	}
	if !is {
		return false
	}
	for _, spelling := range spellings(n) {
		if f.contains(spelling, true) {
			return true
		}
	}
	return false
}

// spellings returns how people write a number: with a point or a comma, without
// decimals or with two, and with groups of three digits.
func spellings(canonical string) (all []string) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(canonical, "-"), ".")
	for _, group := range []string{"", ",", ".", "'", " "} {
		grouped := whole
		for i := len(whole) - 3; group != "" && i > 0; i -= 3 {
			grouped = grouped[:i] + group + grouped[i:]
		}
		for _, point := range []string{".", ","} {
			if fraction == "" {
				all = append(all, grouped)
			}
			for _, digits := range []string{fraction, fraction + "0", fraction + "00"} {
				if digits != "" && digits != "0" {
					all = append(all, grouped+point+digits)
				}
			}
		}
	}
	return all
}
