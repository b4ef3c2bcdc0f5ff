package origin

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/urlscan"
)

// around are the characters that are no part of a word at its ends.
const around = "\"'“”‘’«»()[]{}<>,.;:!?*_~`|=…"

// within are the characters that separate words that have no space between
// them, unless they are in a URL.
const within = ",;|<>()[]{}\"“”«»=…"

// Sentences returns the words of a text that a source contains, by sentences, so
// that no value is found across the end of one. Each word is in the form in
// which all its spellings are the same text: numbers by value, e-mail addresses
// in lower case, URLs as browsers read them, and words of letters without case.
func Sentences(text string) (all [][]string) {
	var sentence []string
	end := func() {
		if len(sentence) > 0 {
			all, sentence = append(all, sentence), nil
		}
	}
	for block := range paragraphs(text) {
		for field := range strings.FieldsFuncSeq(block, apart) {
			for _, word := range wordsOf(field) {
				if t := canonical(strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "’s")); t != "" {
					sentence = append(sentence, t)
				}
			}
			if closes(field) {
				end()
			}
		}
		end()
	}
	return all
}

// paragraphs yields the parts of a text between empty lines and the cells of
// tables.
func paragraphs(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, empty := 0, false
		for i, r := range text {
			switch {
			case r == '|' || r == '\n' && empty:
				if !yield(text[start:i]) {
					return
				}
				start, empty = i+1, false
			case r == '\n':
				empty = true
			case !unicode.IsSpace(r):
				empty = false
			}
		}
		yield(text[start:])
	}
}

// closes reports whether a sentence ends with a word. The point of a short word
// is one of an abbreviation.
func closes(field string) bool {
	word := strings.TrimRight(field, ".!?;:\"'”’»)]")
	return strings.ContainsAny(field[len(word):], ".!?;:") && utf8.RuneCountInString(word) > 2
}

func apart(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// wordsOf returns the words of a text between two spaces, without what stands
// around them.
func wordsOf(field string) (all []string) {
	add := func(word string) {
		if word = strings.TrimLeft(trim(word), "@#"); word != "" {
			all = append(all, word)
		}
	}
	if _, is := number(trim(field)); is || strings.Contains(field, "://") { // commas separate nothing
		add(field)
		return all
	}
	for part := range strings.FieldsFuncSeq(field, func(r rune) bool { return strings.ContainsRune(within, r) }) {
		add(part)
	}
	return all
}

// trim removes what stands around a word. A point before digits belongs to the
// number.
func trim(word string) string {
	word = strings.TrimRight(word, around)
	short := strings.TrimLeft(word, around)
	if cut := word[:len(word)-len(short)]; cut != "" && strings.ContainsAny(cut[len(cut)-1:], ".,") && short != "" && '0' <= short[0] && short[0] <= '9' {
		return cut[len(cut)-1:] + short
	}
	return short
}

// exact returns the words of a value, or nothing if it has a character that a
// source would not count as a part of a word: such a value is another one.
func exact(value string) (tokens []string) {
	if strings.ContainsFunc(value, unicode.IsControl) {
		return nil
	}
	fields := strings.FieldsFunc(value, apart)
	for _, field := range fields {
		word := field
		if len(fields) > 1 { // a text has punctuation
			word = strings.TrimRight(strings.Trim(word, "\"'“”‘’"), ",.;:!?")
		}
		if len(word) > 1 && (word[0] == '@' || word[0] == '#') && isAlnum(word[1]) {
			if word = word[1:]; isDigit(word[0]) {
				return nil // not the number
			}
		}
		_, isNumber := number(word)
		if isNumber && strings.ContainsAny(word, currencies+"%") {
			return nil // the unit is not compared
		}
		isURL := strings.Contains(word, "://")
		if word == "" || !isURL && (trim(word) != word || !isNumber && strings.ContainsAny(word, within)) {
			return nil
		}
		tokens = append(tokens, canonical(word))
	}
	return tokens
}

// ambiguous reports whether the three digits after the point of a number can be
// decimals or a group: 100.000.
func ambiguous(word string) bool {
	at := strings.IndexByte(word, '.')
	return at > 0 && at <= 3 && len(word) == at+4 && word[0] != '0' && !strings.ContainsFunc(word[:at]+word[at+1:], func(r rune) bool { return r < '0' || r > '9' })
}

// canonical returns the canonical form of one word.
func canonical(word string) string {
	if n, is := number(word); is && !ambiguous(word) {
		return "#" + n
	}
	if strings.Contains(word, "://") {
		if url, ok := urlscan.Canonical(word); ok {
			return url
		}
		return word
	}
	if len(word) > len("mailto:") && strings.EqualFold(word[:len("mailto:")], "mailto:") {
		word = word[len("mailto:"):]
	}
	if strings.ContainsRune(word, '@') {
		return strings.ToLower(word)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '-' && r != '\'' }) < 0 {
		return strings.ToLower(word)
	}
	return word
}

func isAlnum(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' }
