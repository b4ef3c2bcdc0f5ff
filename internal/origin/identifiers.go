package origin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/urlscan"
)

// Identifier is a part of a text that names a person, a place or an account elsewhere.
type Identifier struct {
	Text string
	Kind string // url, email, account
}

// identifiers collects each identifier once.
type identifiers struct {
	all  []Identifier
	seen map[Identifier]bool
}

func (ids *identifiers) add(text, kind string) {
	id := Identifier{text, kind}
	if ids.seen == nil {
		ids.seen = map[Identifier]bool{}
	}
	if !ids.seen[id] {
		ids.seen[id] = true
		ids.all = append(ids.all, id)
	}
}

// Identifiers returns the URLs, e-mail addresses, and numbers of accounts, cards
// and phones in a text, each once.
func Identifiers(text string) []Identifier {
	text = plain(text)
	if !strings.ContainsAny(text, ".:/\\@") && strings.Count(strings.Map(onlyDigit, text), "0") < 4 {
		return nil // neither a host nor half of the digits of an account
	}
	var ids identifiers
	for _, m := range urlscan.Find(text) {
		ids.add(m.Text, "url")
	}
	ids.addresses(text)
	ids.accounts(text)
	return ids.all
}

// addresses finds the e-mail addresses: what stands around each @.
func (ids *identifiers) addresses(text string) {
	for rest, before := text, ""; ; {
		local, after, is := strings.Cut(rest, "@")
		if !is {
			return
		}
		local = before + local
		from := strings.LastIndexFunc(local, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._%+-!#$&*'=?^{|}~", r)
		})
		if from >= 0 {
			_, size := utf8.DecodeRuneInString(local[from:])
			local = local[from+size:]
		}
		to := strings.IndexFunc(after, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-' })
		host := after
		if to >= 0 {
			host = after[:to]
		}
		host = strings.TrimRight(host, ".-")
		if local = strings.TrimLeft(local, ".'*{|?!="); local != "" && strings.Contains(host, ".") {
			ids.add(strings.ToLower(local+"@"+host), "email")
		}
		rest, before = after, ""
	}
}

// separators can stand between the groups of an account in a text.
const separators = " -:_./\u2010\u2012\u2013\u2014"

// accounts finds accounts in groups, and words that are mostly digits.
func (ids *identifiers) accounts(text string) {
	groups, begins := groupsOf(text)
	for i := range groups {
		if looksNumbered(groups[i]) {
			ids.add(strings.ToUpper(groups[i]), "account")
		}
		run, found := "", ""
		for n := i; n < len(groups) && n < i+mostGroups && (n == i || !begins[n]); n++ {
			run += groups[n]
			if account, is := Account(run); is {
				found = account
			}
		}
		if found != "" {
			ids.add(found, "account")
		}
	}
}

// groupsOf returns the groups of letters and digits of a text, and which of them
// begin a new run: more than one separator, or another character, is before
// them.
func groupsOf(text string) (groups []string, begins []bool) {
	start, apart := -1, 2
	end := func(i int) {
		if start >= 0 {
			groups, begins = append(groups, text[start:i]), append(begins, apart > 1)
			start, apart = -1, 0
		}
	}
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf && isAlnum(byte(r)), r == '+' && start < 0:
			if r == '+' {
				apart = 2
			}
			if start < 0 {
				start = i
			}
		case strings.ContainsRune(separators, r):
			end(i)
			apart++
		default:
			end(i)
			apart = 2
		}
	}
	end(len(text))
	return groups, begins
}

// looksNumbered reports whether a word can be the number of an account: eight
// characters or more, at least half of them digits.
func looksNumbered(word string) bool {
	return len(word) >= 8 && len(word) <= 40 && 2*strings.Count(strings.Map(onlyDigit, word), "0") >= len(word)
}

// onlyDigit maps digits to 0, and removes others.
func onlyDigit(r rune) rune {
	if '0' <= r && r <= '9' {
		return '0'
	}
	return -1
}
