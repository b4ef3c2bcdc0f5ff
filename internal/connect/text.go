package connect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// FileError is an error in a configuration file. It repeats no value of the
// file, which can be a secret.
type FileError struct {
	Path         string
	Line, Column int // from 1, in characters; 0: the whole file
	Text         string
}

// Error starts with the position, as compilers write it.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Text)
}

// refuse returns a FileError at an offset of a text. The reader adds the path.
func refuse(body []byte, offset int, format string, args ...any) *FileError {
	line, column := position(body, offset)
	return &FileError{Line: line, Column: column, Text: fmt.Sprintf(format, args...)}
}

func position(body []byte, offset int) (line, column int) {
	before := body[:min(max(offset, 0), len(body))]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[begin:]) + 1
}

// inFile adds the path to an error.
func inFile(path string, err error) error {
	if bad, ok := errors.AsType[*FileError](err); ok && bad.Path == "" {
		bad.Path = path
	}
	return err
}

// splice replaces a part of a text.
type splice struct {
	from, to int
	text     string
}

// spliced applies splices, which must not overlap.
func spliced(body []byte, all []splice) []byte {
	slices.SortStableFunc(all, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range all {
		out = append(append(out, body[at:s.from]...), s.text...)
		at = s.to
	}
	return append(out, body[at:]...)
}

const maxBytes = 256 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// opened splits a text into its byte order mark, which editors on Windows add,
// and the rest.
func opened(text []byte) (mark, body []byte, err error) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, nil, &FileError{Text: "it is UTF-16: save it as UTF-8"}
	}
	if len(text) > maxBytes {
		return nil, nil, &FileError{Text: fmt.Sprintf("it has more than %d MiB", maxBytes>>20)}
	}
	body, found := bytes.CutPrefix(text, byteOrderMark)
	if found {
		mark = byteOrderMark
	}
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n == 1 {
			return nil, nil, refuse(body, i, "it is not UTF-8 here")
		}
		i += n
	}
	return mark, body, nil
}

// lineEnd returns the line end of a text.
func lineEnd(body []byte) string {
	if i := bytes.IndexByte(body, '\n'); i > 0 && body[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// withLineEnd replaces the line ends "\n" of a text.
func withLineEnd(text, end string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", end)
}

func blank(b []byte) bool { return len(bytes.Trim(b, " \t\r\n")) == 0 }
