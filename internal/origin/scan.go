package origin

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scan calls each for the hash of every word of a text. Words are letters and
// digits, without case. For what has several words and no space, as an address
// has, it calls each for every two of them and for all together; so it does for
// an account in groups. Of a word of digits between letters, such as EUR500, it
// takes the digits too. In JSON, an escape counts as what it stands for.
func scan(text []byte, json bool, each func(hash uint64)) {
	s := scanner{each: each}
	s.scan(text, json)
}

func (s *scanner) scan(text []byte, json bool) {
	for i := 0; i < len(text); {
		c := text[i]
		if kinds[c] != 0 {
			start, kind := i, kinds[c]
			for i++; i < len(text) && kinds[text[i]] != 0; i++ {
				kind |= kinds[text[i]]
			}
			if kind < beyond {
				s.word(text[start:i], kind)
			} else {
				s.other(string(text[start:i]))
			}
			continue
		}
		i++
		switch {
		case c <= ' ':
			s.space(c == ' ')
		case json && c == '\\' && i < len(text):
			switch text[i] {
			case '"', '\\', '/':
				s.separator(text[i])
			case 'u':
				i = min(i+4, len(text)-1)
				s.space(false)
			default:
				s.space(false)
			}
			i++
		default:
			s.separator(c)
		}
	}
	s.space(false)
}

// scanner finds the words of a text.
type scanner struct {
	each   func(hash uint64)
	plain  bool   // only words and every two of them
	last   uint64 // of the word before, if no space is between; 0: none
	amount uint64 // of the digits of the word before, after the letters of a currency; 0: none
	first  []byte // the first word since the last space
	words  int    // their number
	token  []byte // all of them, if they are several and short
	kind   kind   // of what they consist
	group  []byte // an account in groups so far; empty: none
	sign   bool   // a plus was before
}

const (
	mostToken    = 128
	mostGroup    = 40
	leastAccount = 8
	longestGroup = 8
)

func (s *scanner) word(word []byte, kind kind) {
	hash := hashWord(word)
	s.each(hash)
	if s.last != 0 {
		s.each(pair(s.last, hash))
	}
	before := s.last
	if s.last = hash; s.plain {
		return
	}
	if s.amount != 0 {
		s.each(pair(s.amount, hash))
		s.amount = 0
	}
	if kind == letter|digit {
		s.currency(word, before)
	}
	switch s.words++; s.words {
	case 1:
		s.first, s.kind = word, kind
	case 2:
		s.token = append(append(s.token[:0], s.first...), word...)
		s.kind |= kind
	default:
		if len(s.token) <= mostToken {
			s.token = append(s.token, word...)
		}
		s.kind |= kind
	}
}

// currency adds the digits of an amount without the letters of its currency:
// EUR500, 1,500kr.
func (s *scanner) currency(word []byte, before uint64) {
	core, after := digitsWithin(word)
	if core == nil {
		return
	}
	hash := hashWord(core)
	if s.each(hash); !after {
		s.amount = hash
	} else if before != 0 {
		s.each(pair(before, hash))
	}
}

// other finds the words in what is not ASCII, in one form of Unicode. Signs
// separate them.
func (s *scanner) other(text string) {
	for _, word := range strings.FieldsFunc(strings.ToLower(plain(text)), isSign) {
		all := kind(0)
		for i := range len(word) {
			all |= kinds[word[i]]
		}
		s.word([]byte(word), all)
	}
}

// isSign reports whether a character is no part of a word.
func isSign(r rune) bool {
	if r < utf8.RuneSelf {
		return kinds[byte(r)] == 0
	}
	return !unicode.In(r, unicode.Letter, unicode.Mark, unicode.Number)
}

func (s *scanner) separator(c byte) { s.sign = c == '+' }

// space ends what has no space. An account goes on after a single one.
func (s *scanner) space(single bool) {
	token := s.first
	if s.words > 1 {
		if token = s.token; len(token) <= mostToken {
			s.each(together(token))
		}
	}
	if s.words > 0 && s.kind&digit != 0 {
		s.grouped(token, single)
	} else if len(s.group) > 0 {
		s.group = s.group[:0]
	}
	s.last, s.amount, s.words, s.sign = 0, 0, 0, false
}

// grouped adds the words since the last space to an account in groups.
func (s *scanner) grouped(word []byte, more bool) {
	begins := s.sign || len(word) >= 4 && !isDigit(word[0]) && !isDigit(word[1]) && isDigit(word[2]) && isDigit(word[3])
	switch {
	case len(word) > longestGroup || len(s.group)+len(word) > mostGroup:
		s.group = s.group[:0]
		return
	case begins:
		s.group = append(s.group[:0], word...)
	case len(s.group) > 0 || len(word) == 4:
		s.group = append(s.group, word...)
	}
	if len(s.group) > len(word) && len(s.group) >= leastAccount {
		s.each(together(s.group))
	}
	if !more {
		s.group = s.group[:0]
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// mostCurrency is how many letters of a currency stand before or after an amount.
const mostCurrency = 3

// digitsWithin returns the digits of a word of ASCII that the letters of a
// currency stand before or after.
func digitsWithin(word []byte) (core []byte, after bool) {
	if isDigit(word[0]) {
		if !isDigit(word[max(0, len(word)-1-mostCurrency)]) {
			return nil, false
		}
		core, after = bytes.TrimRightFunc(word, isLetter), true
	} else {
		if !isDigit(word[min(mostCurrency, len(word)-1)]) {
			return nil, false
		}
		core = bytes.TrimLeftFunc(word, isLetter)
	}
	if slices.ContainsFunc(core, func(c byte) bool { return !isDigit(c) }) {
		return nil, false
	}
	return core, after
}

func isLetter(r rune) bool { return r < '0' || r > '9' }

// kind is of what a word consists.
type kind uint8

const (
	letter kind = 1 << iota
	digit
	beyond // ASCII
)

// kinds are the kinds of the bytes of words; 0: it separates words.
var kinds = func() (t [256]kind) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf:
			t[c] = beyond
		case isDigit(byte(c)):
			t[c] = digit
		case isAlnum(byte(c)):
			t[c] = letter
		}
	}
	return t
}()
