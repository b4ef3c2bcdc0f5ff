package origin

import (
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

// Tokens returns the words of a text in order, each in the form in which all
// its spellings are the same text: numbers by value, addresses and hosts in
// lower case, URLs as browsers read them, and words of letters without case.
func Tokens(text string) []string {
	var tokens []string
	for _, word := range words(text) {
		if t := canonical(word); t != "" {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// words returns the words of a text as they are written.
func words(text string) []string {
	var all []string
	add := func(word string) {
		if word = strings.TrimLeft(strings.Trim(word, around), "@#"); word != "" {
			all = append(all, word)
		}
	}
	for _, word := range strings.FieldsFunc(text, apart) {
		if _, is := number(strings.Trim(word, around)); is || strings.Contains(word, "://") { // commas separate nothing
			add(word)
			continue
		}
		for _, part := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(within, r) }) {
			add(part)
		}
	}
	return all
}

func apart(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// canonical returns the canonical form of one word.
func canonical(word string) string {
	if n, is := number(word); is {
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
	if strings.ContainsRune(word, '@') || isHost(word) {
		return strings.ToLower(word)
	}
	for _, ending := range []string{"'s", "’s"} {
		word = strings.TrimSuffix(word, ending)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '-' && r != '\'' }) < 0 {
		return strings.ToLower(word)
	}
	return word
}

// isHost reports whether a word looks like the name of a host: labels with dots
// between them, and a last one of letters.
func isHost(word string) bool {
	last := word[strings.LastIndexByte(word, '.')+1:]
	if len(last) < 2 || len(last) == len(word) {
		return false
	}
	for i := range len(last) {
		if c := last[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	for i := range len(word) {
		c := word[i]
		if c >= utf8.RuneSelf || c != '.' && c != '-' && !isAlnum(c) {
			return false
		}
	}
	return word[0] != '.' && !strings.Contains(word, "..")
}

func isAlnum(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// currencies can stand before or after an amount.
const currencies = "$€£¥₹"

// number returns a number by its value: without signs of a currency, grouping,
// and zeros that do not count. One comma before exactly three digits groups;
// any other one is a decimal point. One point is a decimal point.
func number(word string) (canonical string, ok bool) {
	word = strings.TrimRight(strings.Trim(word, currencies), "%")
	sign := ""
	if rest, is := strings.CutPrefix(word, "-"); is {
		sign, word = "-", strings.TrimLeft(rest, currencies)
	}
	if word == "" || len(word) > 40 || word[0] < '0' || word[0] > '9' || len(word) > 1 && word[0] == '0' && isAlnum(word[1]) {
		return "", false // with a zero in front it is the name of something
	}
	whole, fraction, ok := split(word)
	if !ok {
		return "", false
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		whole += "." + fraction
	}
	if whole == "0" {
		sign = ""
	}
	return sign + whole, true
}

// split returns the digits before and after the decimal point.
func split(word string) (whole, fraction string, ok bool) {
	if strings.ContainsAny(word, "'’") {
		word = strings.ReplaceAll(strings.ReplaceAll(word, "'", ""), "’", "")
	}
	for i := range len(word) {
		if c := word[i]; (c < '0' || c > '9') && c != '.' && c != ',' {
			return "", "", false
		}
	}
	commas, points := strings.Count(word, ","), strings.Count(word, ".")
	switch {
	case commas == 0 && points <= 1:
		whole, fraction, _ = strings.Cut(word, ".")
		return whole, fraction, true
	case points == 0 && commas == 1 && len(word)-strings.IndexByte(word, ',')-1 != 3:
		whole, fraction, _ = strings.Cut(word, ",")
		return whole, fraction, true
	}
	group, decimal := ",", "."
	if strings.LastIndexByte(word, ',') > strings.LastIndexByte(word, '.') && points > 0 {
		group, decimal = ".", ","
	}
	if commas > 0 && points == 0 {
		decimal = "" // every comma groups
	} else if points > 1 && commas == 0 {
		group, decimal = ".", ""
	}
	if decimal != "" {
		if strings.Count(word, decimal) > 1 {
			return "", "", false
		}
		word, fraction, _ = strings.Cut(word, decimal)
	}
	parts := strings.Split(word, group)
	for _, p := range parts[1:] {
		if len(p) != 3 {
			return "", "", false
		}
	}
	return strings.Join(parts, ""), fraction, len(parts[0]) > 0
}

// Joined returns the runs of short words with digits, as people write the
// numbers of accounts and phones, each as one account: DE89 3704 0044.
func Joined(text string) []string {
	var all []string
	list := words(text)
	for i := 0; i < len(list); {
		end, run := i, ""
		for ; end < len(list) && group(list[end]); end++ {
			run += list[end]
		}
		if account, is := Account(run); is && end > i+1 {
			all = append(all, account)
		}
		i = max(end, i+1)
	}
	return all
}

// group reports whether a word can be a part of a number that is written in
// groups.
func group(word string) bool {
	return len(word) <= 8 && strings.ContainsAny(word, "0123456789") &&
		strings.IndexFunc(word, func(r rune) bool { return r >= utf8.RuneSelf || r != '+' && r != '-' && !isAlnum(byte(r)) }) < 0
}

// Account returns the number of an account, a card or a phone without what
// groups it, and whether the text can be one: 8 to 40 letters and digits, half
// of them digits at least.
func Account(text string) (account string, ok bool) {
	digits := 0
	account = strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-' || r == '.' || r == '/' || r == '(' || r == ')':
			return -1
		case '0' <= r && r <= '9':
			digits++
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, text)
	if len(account) < 8 || len(account) > 40 || 2*digits < len(account) {
		return "", false
	}
	for i := range len(account) {
		if !isAlnum(account[i]) && (account[i] != '+' || i > 0) {
			return "", false
		}
	}
	return account, true
}
