package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/callview"
)

// Printable escapes characters that control a terminal. Texts of tools, files
// and policies must not control it. Line ends become spaces.
func Printable(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	return callview.Escape(s)
}

// Clip shortens a text to n characters.
func Clip(s string, n int) string { return callview.Clip(s, n) }

// Count formats a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Bytes formats a number of bytes for people.
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return Count(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
}

// Entries formats a number of journal entries.
func Entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
