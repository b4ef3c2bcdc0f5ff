package urlscan

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

// begin returns where a URL begins, by every rule that programs use, and where
// its scheme ends. at is -1 if none begins.
func begin(text string) (at, after int) {
	for from := 0; ; {
		colon := strings.IndexByte(text[from:], ':')
		if colon < 0 {
			return -1, 0
		}
		colon += from
		from = colon + 1
		if at := schemeAt(text, colon); at >= 0 {
			return at, from
		}
	}
}

// schemeAt returns where the scheme before a colon begins, or -1 if there is
// none, or if no URL follows.
func schemeAt(text string, colon int) int {
	start := colon
	for start > 0 && inScheme(text[start-1]) {
		start--
	}
	rest := text[colon+1:]
	slash := rest != "" && (rest[0] == '/' || rest[0] == '\\')
	if next, _ := utf8.DecodeRuneInString(rest); rest == "" || ends(next) {
		return -1
	}
	for _, scheme := range leaders() { // with a slash also after other letters: a reader can cut there
		if at := colon - len(scheme); at >= 0 && (at == start || slash) && strings.EqualFold(text[at:colon], scheme) {
			return at
		}
	}
	for start < colon && !isLetter(text[start]) {
		start++
	}
	name := strings.ToLower(text[start:colon])
	switch {
	case name == "":
		return -1
	case slices.Contains(plain(), name), strings.HasPrefix(rest, "//") && !ours(name, rest[2:]):
		return start
	case name == "file" && slash && !strings.HasPrefix(rest, "//"):
		return start
	}
	return -1
}

// plain returns the schemes that need no slashes.
func plain() []string {
	return []string{"mailto", "tel", "sms", "data", "javascript", "vbscript", "blob", "filesystem", "view-source", "magnet", "sip", "sips", "xmpp"}
}

// ours reports whether a URL names a resource of a policy, and leads nowhere
// else.
func ours(scheme, rest string) bool {
	switch scheme {
	case "db", "exec", "mcp", "secret", "tool":
		return true
	case "file": // a root has no dot in its name, and a host in another network has one
		root, _, _ := strings.Cut(rest, "/")
		return root != "" && !strings.ContainsAny(root, ".:%@[")
	}
	return false
}

func inScheme(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || strings.IndexByte("+-.", c) >= 0
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Read yields the canonical form of every URL that a reader can find in a text.
// That includes a URL inside another, with and without the punctuation at its
// end, and as quoted by JSON or HTML.
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

// Written yields the URLs of Read, and those that a program finds that drops
// tabs and line ends, as browsers do.
func Written(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !readFrom(text, yield) {
			return
		}
		plain := squeezed(strings.ReplaceAll(text, `\/`, "/"))
		if plain != text {
			readFrom(plain, yield)
		}
	}
}

// Bare yields the URLs of Written, and every word that begins like a host as if
// it had a scheme: a program that completes it makes a URL of it.
func Bare(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for url := range Written(text) {
			if !yield(url) {
				return
			}
		}
		for word := range strings.FieldsFuncSeq(text, ends) {
			word = strings.TrimLeft(word, `([{'/\`)
			if !dotted(word) {
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

// clipped returns at most the first 200 bytes of a text that is not a URL.
func clipped(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// end returns the last possible end of a URL that begins at from.
func end(text string, from int) int {
	if n := strings.IndexFunc(text[from:], ends); n >= 0 {
		return from + n
	}
	return len(text)
}

func ends(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError || strings.ContainsRune("\"<>“”«»„", r)
}

// forms returns the possible readings of a text as a URL, each once.
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
			url, ok := Canonical(form)
			if !ok {
				url, ok = Other(form)
			}
			if ok && !slices.Contains(all, url) {
				all = append(all, url)
			}
		}
	}
	return all
}

// closed returns a URL without the punctuation of its sentence, and without a
// bracket that was not opened in it.
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

// Texts yields the texts of a JSON document, names too. It ends at invalid
// JSON.
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
