package canon

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrInvalid is wrapped by every rejection of a document: it is not JSON, not
// strict JSON, over a limit, or does not fit the Go value. The message names
// the place and the valid values, and never a value of the document.
var ErrInvalid = errors.New("invalid JSON")

// parseFault is a rejection while the parser unwinds. Containers add their
// token on the way, so a valid document does not pay for tracking positions.
type parseFault struct {
	tokens []string // innermost first
	offset int      // bytes into the document; negative if no single byte is the cause
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

// ParseError is the error of [Parse] for a rejected document.
type ParseError struct {
	Tokens []string // the member names and indexes of the place
	Offset int      // bytes into the document; negative if no single byte is the cause
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

// Bounds of the member names in a message. They come from the document, and a
// message must stay short.
const (
	maxTokenShown   = 80
	maxPointerShown = 400
)

// Place returns the text of a place in a document for a message: "at the top",
// or "at" and the quoted JSON Pointer of the member names and indexes. It is
// cut if it is long, so it is only for people.
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
