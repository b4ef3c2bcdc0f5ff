package callview

import (
	"strconv"
	"strings"
	"unicode"
)

// Escape escapes the characters of a text that are not visible: those that
// control a terminal, change the direction of a text, or have no width.
func Escape(s string) string { return escape(s, unprintable) }

// EscapeLines is Escape for a text of several lines: it keeps line feeds and
// tabs.
func EscapeLines(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && unprintable(r) })
}

func escape(s string, hidden func(rune) bool) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// oneLine is Escape for a text of which the line ends become spaces.
func oneLine(s string) string {
	return Escape(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " "))
}

// Clip shortens a text to n characters.
func Clip(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}
