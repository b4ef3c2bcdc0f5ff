package canon

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrInvalid is what every refusal of a document wraps: it is not JSON, not strict JSON, over a limit, or not what the Go
// value asked for. The message names the place and what is valid, and never a value of the document.
var ErrInvalid = errors.New("invalid JSON")

// parseFault is a refusal on its way up. Containers add their token while the parser unwinds, so that a good document never pays
// for knowing where it is.
type parseFault struct {
	tokens []string // innermost first
	offset int      // bytes into the document; negative when no one byte is to blame
	text   string
}

func (f *parseFault) in(token string) *parseFault {
	f.tokens = append(f.tokens, token)
	return f
}

func (f *parseFault) err() error {
	slices.Reverse(f.tokens)
	return &ParseError{Tokens: f.tokens, Offset: f.offset, Text: f.text}
}

// ParseError is what [Parse] refuses a document with.
type ParseError struct {
	Tokens []string // the member names and indexes that lead to the place
	Offset int      // bytes into the document; negative when no one byte is to blame
	Text   string
}

// Error names the place.
func (e *ParseError) Error() string {
	where := Place(e.Tokens)
	if e.Offset >= 0 {
		where += " (byte " + strconv.Itoa(e.Offset) + ")"
	}
	return fmt.Sprintf("%v %s: %s", ErrInvalid, where, e.Text)
}

// Unwrap returns ErrInvalid.
func (e *ParseError) Unwrap() error { return ErrInvalid }

// Bounds of what a message repeats of member names, which come from the document: a message must stay short when they don't.
const (
	maxTokenShown   = 80
	maxPointerShown = 400
)

// Place names a place in a document for a message: "at the top", or "at" and the quoted JSON Pointer of the member names and
// indexes that lead there. It is cut when it is long, so it is for reading only.
func Place(tokens []string) string {
	if len(tokens) == 0 {
		return "at the top"
	}
	var b strings.Builder
	for _, t := range tokens {
		if b.Len() > maxPointerShown {
			b.WriteString("/…")
			break
		}
		b.WriteByte('/')
		b.WriteString(escapeToken(shorten(t)))
	}
	return "at " + strconv.Quote(b.String())
}

func escapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

func shorten(token string) string {
	if len(token) <= maxTokenShown {
		return token
	}
	return strings.ToValidUTF8(token[:maxTokenShown], "") + "…"
}
