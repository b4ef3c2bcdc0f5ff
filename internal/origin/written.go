package origin

import (
	"bytes"
	"slices"
	"strings"
)

// written are the values that calls were told, without case and separators.
type written struct {
	all     map[string]bool     // without a trusted origin
	long    map[string][]string // of these, those of four bytes and more, by the first four
	pieces  map[string]bool     // all short ones, also with a trusted origin
	texts   []byte              // those without a trusted origin, one after the other
	over    bool                // texts does not have all
	unknown bool
}

// window is how many bytes a written value has at least, if a value that
// contains it counts as written.
const window = 4

// Bounds of the written values that are compared as a part of another value, or
// that can contain it, in bytes.
const (
	longestPiece = 64
	mostTexts    = 1 << 18
)

// add notes a value without a trusted origin.
func (w *written) add(value string, most int) {
	w.piece(value)
	if value = bare(value); value == "" || w.all[value] {
		return
	}
	if len(w.texts)+len(value) > mostTexts {
		w.over = true
	} else {
		w.texts = append(append(w.texts, value...), 0)
	}
	switch {
	case len(value) > longest:
		return
	case len(w.all) >= most:
		w.unknown = true
		return
	case w.all == nil:
		w.all, w.long = map[string]bool{}, map[string][]string{}
	}
	w.all[value] = true
	if len(value) >= window {
		w.long[value[:window]] = append(w.long[value[:window]], value)
	}
}

// piece notes a value that others can be put together of.
func (w *written) piece(value string) {
	if value = bare(value); value == "" || len(value) > longestPiece || len(w.pieces) >= mostWritten {
		return
	}
	if w.pieces == nil {
		w.pieces = map[string]bool{}
	}
	w.pieces[value] = true
}

// has reports whether a value was written, as a whole.
func (w *written) has(value string) bool { return w.all[bare(value)] }

// makes reports whether a value can be made of written ones: a part of one, more
// than one, or several put together.
func (w *written) makes(value string) bool {
	if value = bare(value); value == "" {
		return false
	}
	if len(value) >= window && bytes.Contains(w.texts, []byte(value)) {
		return true
	}
	parts := make([]int, len(value)+1) // of which the text up to there is put together, and one more; 0: it is not
	parts[0] = 1
	for i := range len(value) {
		if i+window <= len(value) && slices.ContainsFunc(w.long[value[i:i+window]], func(p string) bool { return strings.HasPrefix(value[i:], p) }) {
			return true
		}
		for n := 1; parts[i] > 0 && n <= longestPiece && i+n <= len(value); n++ {
			if w.pieces[value[i:i+n]] {
				parts[i+n] = max(parts[i+n], parts[i]+1)
			}
		}
	}
	return parts[len(value)] > 2
}

// bare returns the letters and digits of a text, in one form and without case.
func bare(text string) string {
	text = plain(text)
	b := make([]byte, 0, len(text))
	var all kind
	for i := range len(text) {
		c := text[i]
		if k := kinds[c]; k != 0 {
			if k == letter {
				c |= 0x20
			}
			b, all = append(b, c), all|k
		}
	}
	if all&beyond == 0 {
		return string(b)
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(string(b)), isSign), "")
}
