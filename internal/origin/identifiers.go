package origin

import (
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/urlscan"
)

// Identifier is a part of a text that names somebody or something elsewhere.
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
		if !isTime(m.Text) {
			add(m.Text, "url")
		}
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

// isTime reports whether a text is a time as programs write it, which has the
// colon of a host and its port.
func isTime(text string) bool {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, "15:04", "15:04:05"} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// digit maps digits to 0.
func digit(r rune) rune {
	if '0' <= r && r <= '9' {
		return '0'
	}
	return -1
}
