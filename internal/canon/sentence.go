package canon

import "strings"

// Sentence ends a text with a full stop if it has no end.
func Sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}
