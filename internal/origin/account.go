package origin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// mostGroups is how many groups of characters an account is written in at most:
// an IBAN of 34 characters.
const mostGroups = 9

// Joined returns the accounts that a text has in groups, as people write them:
// DE89 3704 0044. A group that punctuation follows ends the account.
func Joined(text string) (all []string) {
	for line := range strings.Lines(text) {
		all = append(all, joined(line)...)
	}
	return all
}

func joined(line string) (all []string) {
	fields := strings.FieldsFunc(line, apart)
	for i := 0; i < len(fields); i++ {
		run, found, next := "", "", i
		for n := i; n < len(fields) && n < i+mostGroups; n++ {
			group := strings.TrimRight(fields[n], around)
			run += group
			if account, is := Account(run); is && n > i {
				found, next = account, n
			}
			if group != fields[n] {
				break
			}
		}
		if found != "" {
			all, i = append(all, found), next
		}
	}
	return all
}

// Account returns an IBAN, the number of a card or an international number of a
// phone without spaces and hyphens. ok is false for any other text.
func Account(text string) (account string, ok bool) {
	b := make([]byte, 0, len(text))
	for i, r := range text {
		switch {
		case r == ' ' || r == '-' || r == '\u00a0' || r == '\u2011':
		case r == '+' && i == 0, r < utf8.RuneSelf && isAlnum(byte(r)):
			b = append(b, byte(r))
		default:
			return "", false
		}
	}
	account = strings.ToUpper(string(b))
	return account, isIBAN(account) || isCard(account) || isPhone(account)
}

// isIBAN checks the form and the check digits of ISO 13616.
func isIBAN(s string) bool {
	if len(s) < 15 || len(s) > 34 || !letters(s[:2]) || !digits(s[2:4]) {
		return false
	}
	rest := 0
	for _, c := range []byte(s[4:] + s[:4]) {
		switch {
		case '0' <= c && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		case 'A' <= c && c <= 'Z':
			rest = (rest*100 + int(c-'A') + 10) % 97
		default:
			return false
		}
	}
	return rest == 1
}

// isCard checks the length and the check digit of ISO/IEC 7812.
func isCard(s string) bool {
	if len(s) < 13 || len(s) > 19 || !digits(s) {
		return false
	}
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isPhone checks the form of E.164.
func isPhone(s string) bool {
	return len(s) >= 9 && len(s) <= 16 && s[0] == '+' && s[1] != '0' && digits(s[1:])
}

func digits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

func letters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 'A' || r > 'Z' }) < 0
}

// plain returns a text in one form: compatible characters of Unicode as one
// (NFKC), without those that show nothing.
func plain(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFKC.String(strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Cf, r) {
					return -1
				}
				return r
			}, text))
		}
	}
	return text
}
