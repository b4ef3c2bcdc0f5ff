package sqlite

import "strings"

// skipStatement returns the text from the first semicolon outside of strings,
// names and comments, or "".
func skipStatement(text string) string {
	for i := 0; i < len(text); {
		if n := skipComment(text[i:]); n > 0 {
			i += n
			continue
		}
		switch c := text[i]; c {
		case ';':
			return text[i:]
		case '\'', '"', '`':
			i += skipQuoted(text[i:], c)
		case '[':
			i += skipQuoted(text[i:], ']')
		default:
			i++
		}
	}
	return ""
}

// skipQuoted returns the length of a string or name that ends with a byte.
func skipQuoted(text string, end byte) int {
	n := strings.IndexByte(text[1:], end)
	if n < 0 {
		return len(text)
	}
	return n + 2
}

// skipSpace returns the length of the leading spaces or comment.
func skipSpace(text string) int {
	if strings.IndexByte(" \t\r\n\f", text[0]) >= 0 {
		return 1
	}
	return skipComment(text)
}

func skipComment(text string) int {
	switch {
	case strings.HasPrefix(text, "--"):
		if n := strings.IndexByte(text, '\n'); n >= 0 {
			return n + 1
		}
		return len(text)
	case strings.HasPrefix(text, "/*"):
		if n := strings.Index(text[2:], "*/"); n >= 0 {
			return n + 4
		}
		return len(text)
	default:
		return 0
	}
}

// skipAll returns the text after all leading spaces and comments.
func skipAll(text string) string {
	for text != "" {
		n := skipSpace(text)
		if n == 0 && text[0] == ';' {
			n = 1
		}
		if n == 0 {
			break
		}
		text = text[n:]
	}
	return text
}
