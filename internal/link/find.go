package link

import (
	"bytes"
	"encoding/json"
	"html"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// begin finds where a URL begins, also one with a slash too few or of the wrong kind, which some programs take for one, and where its
// scheme is over. At is -1 where none begins.
func begin(text string) (at, after int) {
	for from := 0; ; {
		colon := strings.IndexByte(text[from:], ':')
		if colon < 0 {
			return -1, 0
		}
		colon += from
		from = colon + 1
		if from == len(text) || text[from] != '/' && text[from] != '\\' {
			continue
		}
		for _, scheme := range schemes() {
			if at := colon - len(scheme); at >= 0 && strings.EqualFold(text[at:colon], scheme) {
				return at, from
			}
		}
	}
}

// Read yields the canonical form of every URL that a reader can take out of a text: also of one inside another, with and without the
// signs at its end that may belong to the sentence, and as it is where JSON or HTML quote it.
func Read(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !readFrom(text, yield) {
			return
		}
		if plain := strings.ReplaceAll(text, `\/`, "/"); plain != text {
			readFrom(plain, yield)
		}
	}
}

func readFrom(text string, yield func(string) bool) bool {
	for {
		at, after := begin(text)
		if at < 0 {
			return true
		}
		for _, form := range forms(text[at:end(text, at)]) {
			if !yield(form) {
				return false
			}
		}
		text = text[after:]
	}
}

// Bare yields what Read does, and every word that begins like a host as if a scheme stood before it: a program that completes it makes a URL
// of that.
func Bare(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for url := range Read(text) {
			if !yield(url) {
				return
			}
		}
		for word := range strings.FieldsFuncSeq(text, ends) {
			word = strings.TrimLeft(word, `([{'/`)
			if !hosted(word) {
				continue
			}
			for _, scheme := range []string{"https://", "http://"} {
				for _, form := range forms(scheme + word) {
					if !yield(form) {
						return
					}
				}
			}
		}
	}
}

// hosted reports whether a word begins with a name of two parts or more, such as example.com.
func hosted(word string) bool {
	host, _, _ := strings.Cut(word, "/")
	if at := strings.IndexAny(host, "?#:,;)]}'"); at >= 0 {
		host = host[:at]
	}
	dot := strings.LastIndexByte(strings.TrimRight(host, "."), '.')
	return dot > 0 && !strings.ContainsFunc(host, notInHost)
}

// Mention is a URL that an argument names.
type Mention struct {
	Text  string   // as it stands there, or its canonical form
	Forms []string // canonical; each is a way to read it. None: it is no URL that could have been given
}

// Mentions lists the URLs that an argument names. One that begins with a URL is that and nothing more; what is inside a URL is a part of it.
func Mentions(argument string) (all []Mention) {
	text := strings.TrimSpace(argument)
	if at, _ := begin(text); at == 0 {
		if whole, ok := Canonical(text); ok {
			return []Mention{{Text: whole, Forms: []string{whole}}}
		}
		return []Mention{{Text: clipped(text)}}
	}
	for {
		at, _ := begin(text)
		if at < 0 {
			return all
		}
		stop := end(text, at)
		m := Mention{Text: clipped(text[at:stop]), Forms: forms(text[at:stop])}
		if len(m.Forms) > 0 {
			m.Text = m.Forms[0]
		}
		all, text = append(all, m), text[stop:]
	}
}

// clipped is a text that stands for a URL where there is none.
func clipped(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// end is where a URL that begins at some place of a text is over at the latest.
func end(text string, from int) int {
	if n := strings.IndexFunc(text[from:], ends); n >= 0 {
		return from + n
	}
	return len(text)
}

func ends(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError || strings.ContainsRune("\"<>“”«»„", r)
}

// forms are the ways to read what stands in a text as a URL, each once.
func forms(text string) (all []string) {
	if len(text) > 2*Longest {
		return nil
	}
	ascii := strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	word := strings.IndexAny(text, "{}|^`\\'")
	for _, cut := range []int{len(text), ascii, word} {
		if cut < 0 {
			continue
		}
		for _, form := range []string{text[:cut], closed(text[:cut]), html.UnescapeString(closed(text[:cut]))} {
			if url, ok := Canonical(form); ok && !slices.Contains(all, url) {
				all = append(all, url)
			}
		}
	}
	return all
}

// closed is a URL without what ends the sentence that it stands in, and without a bracket that was not opened in it.
func closed(text string) string {
	for text != "" {
		last := text[len(text)-1]
		opened := map[byte]string{')': "(", ']': "["}[last]
		switch {
		case strings.IndexByte(".,;:!?'*_~", last) >= 0:
		case opened != "" && strings.Count(text, opened) < strings.Count(text, string(last)):
		default:
			return text
		}
		text = text[:len(text)-1]
	}
	return text
}

// Texts yields the texts of a JSON document, names too. What is not JSON ends it.
func Texts(document []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		in := json.NewDecoder(bytes.NewReader(document))
		in.UseNumber()
		for {
			token, err := in.Token()
			if err != nil {
				return
			}
			if text, ok := token.(string); ok && !yield(text) {
				return
			}
		}
	}
}
