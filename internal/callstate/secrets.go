package callstate

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// HiddenText stands where something was taken out.
const HiddenText = "(hidden)"

// SecretValues are values that must be nowhere: those of the secrets that somebody
// opened. It only ever grows. The zero Hidden holds none; it is safe for concurrent
// use.
type SecretValues struct {
	mu    sync.Mutex          // never held across a wait
	forms map[string][]string // by value
	out   *strings.Replacer   // nil: to be made of the forms
}

// Add hides a value from now on. An empty one would be everywhere and is left out.
func (h *SecretValues) Add(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value == "" || h.forms[value] != nil {
		return
	}
	if h.forms == nil {
		h.forms = map[string][]string{}
	}
	h.forms[value], h.out = formsOf(value), nil
}

// replacer takes all forms out of a text; nil where there are none.
func (h *SecretValues) replacer() *strings.Replacer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out != nil || len(h.forms) == 0 {
		return h.out
	}
	var all []string
	for _, forms := range h.forms {
		all = append(all, forms...)
	}
	// One may be a part of another, which then has to go first.
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, form := range slices.Compact(all) {
		pairs = append(pairs, form, HiddenText)
	}
	h.out = strings.NewReplacer(pairs...)
	return h.out
}

// SecretSets are what the drivers of a runtime hide. A nil one hides nothing.
type SecretSets []*SecretValues

// SecretSource is a driver that knows values which must be nowhere.
type SecretSource interface {
	SecretValues(k ModuleKey) *SecretValues
}

// SecretsOf collects what drivers hide.
func SecretsOf(drivers []any) (s SecretSets) {
	for _, d := range drivers {
		if h, ok := d.(SecretSource); ok {
			if hidden := h.SecretValues(NewKey()); hidden != nil {
				s = append(s, hidden)
			}
		}
	}
	return s
}

// None reports whether there is nothing to hide yet.
func (s SecretSets) None() bool {
	for _, h := range s {
		if h.replacer() != nil {
			return false
		}
	}
	return true
}

// Scrub takes the values out of a text, also where they stand in base64, in
// hexadecimal, or escaped for a URL, for JSON, for Go or for HTML.
func (s SecretSets) Scrub(text string) string {
	for _, h := range s {
		if out := h.replacer(); out != nil {
			text = out.Replace(text)
		}
	}
	return text
}

// Scrub takes the values of opened secrets out of a text of the call.
func (c *Call) Scrub(text string) string { return SecretsOf(c.cfg.Drivers).Scrub(text) }

// lineLength is how long a line of a value must be to be hidden by itself: a key in
// several lines is often shown line by line.
const lineLength = 8

// formsOf lists the texts that a value is hidden as.
func formsOf(value string) []string {
	forms := encodings(value)
	if lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 1 {
		for _, l := range lines {
			if l = strings.TrimSpace(l); len(l) >= lineLength {
				forms = append(forms, encodings(l)...)
			}
		}
	}
	return slices.DeleteFunc(forms, func(f string) bool { return len(f) < 4 })
}

func encodings(value string) []string {
	raw := []byte(value)
	forms := []string{
		value, hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)),
		numbers(raw, " "), numbers(raw, ","), numbers(raw, ", "),
		quoted(strconv.Quote(value)), quoted(strconv.QuoteToASCII(value)),
		html.EscapeString(value), strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(html.EscapeString(value)),
	}
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value), percent(raw)} {
		forms = append(forms, escaped, lowerPercent(escaped))
	}
	return append(append(forms, inBase64(raw)...), inJSON(value)...)
}

// inBase64 is a value in base64 by itself, and the digits that stand for it
// wherever it lies in a longer text, such as user:value.
func inBase64(raw []byte) (forms []string) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, enc.EncodeToString(raw), enc.WithPadding(base64.NoPadding).EncodeToString(raw))
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), raw...))
			from, to := (before*8+5)/6, (before+len(raw))*8/6
			forms = append(forms, text[from:to])
		}
	}
	return forms
}

// inJSON is a value inside a JSON string as the usual encoders write it.
func inJSON(value string) []string {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	text := quoted(string(plain))
	unescaped := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
	return []string{
		text, unescaped, strings.ReplaceAll(unescaped, "/", `\/`), strings.ReplaceAll(text, "/", `\/`),
		unicodes(unescaped, utf8.RuneSelf), unicodes(value, 0), strings.ToUpper(unicodes(value, 0)), upperDigits(unicodes(value, 0)),
	}
}

// unicodes writes the characters from one on as \u and four digits.
func unicodes(s string, from rune) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < from:
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func upperDigits(s string) string {
	return strings.ReplaceAll(strings.ToUpper(s), `\U`, `\u`)
}

// numbers are bytes as Go prints them, and as lists of other languages.
func numbers(raw []byte, between string) string {
	all := make([]string, len(raw))
	for i, c := range raw {
		all[i] = strconv.Itoa(int(c))
	}
	return strings.Join(all, between)
}

func percent(raw []byte) string {
	var b strings.Builder
	for _, c := range raw {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// lowerPercent writes the digits of percent escapes in lower case.
func lowerPercent(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

func quoted(s string) string { return s[1 : len(s)-1] }
