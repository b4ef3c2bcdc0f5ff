package origin

import (
	"strings"

	"github.com/remit-dev/remit/internal/urlscan"
)

// Identifier is a part of a text that names a person, a place or an account elsewhere.
type Identifier struct {
	Text string
	Kind string // url, email, account
}

// Identifiers returns the URLs, e-mail addresses, and numbers of accounts and
// phones in a text, each once.
func Identifiers(text string) []Identifier {
	if !strings.ContainsAny(text, ".:/\\@") && strings.Count(strings.Map(digit, text), "0") < 4 {
		return nil // neither a host nor half of the digits of an account
	}
	var all []Identifier
	seen := map[Identifier]bool{}
	add := func(text, kind string) {
		if id := (Identifier{text, kind}); !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	for _, m := range urlscan.Find(text) {
		add(m.Text, "url")
	}
	for _, word := range words(text) {
		if _, host, is := strings.Cut(word, "@"); is && isHost(host) {
			add(canonical(word), "email")
		} else if account, is := Account(word); is {
			add(account, "account")
		}
	}
	for _, account := range Joined(text) {
		add(account, "account")
	}
	return all
}

// digit maps digits to 0.
func digit(r rune) rune {
	if '0' <= r && r <= '9' {
		return '0'
	}
	return -1
}
