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

// HiddenText replaces a removed value.
const HiddenText = "(hidden)"

// SecretValues holds values that must appear nowhere: those of opened secrets.
// It only grows. The zero SecretValues is empty. It is safe for concurrent use.
type SecretValues struct {
	mu    sync.Mutex          // never held across a wait
	forms map[string][]string // by value
	out   *strings.Replacer   // nil: not built from the forms yet
}

// Add hides a value from now on. It ignores an empty one, which occurs
// everywhere.
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

// replacer returns a replacer of all forms, or nil if there are none.
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
	// A form can be a part of another one, which must be replaced first.
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

// SecretSets are the values that the drivers of a runtime hide. A nil one hides
// nothing.
type SecretSets []*SecretValues

// secretSources is written only while packages are initialized.
var secretSources []func(driver any) *SecretValues

// InstallSecretSource adds a function that returns the values of a driver that
// must appear nowhere, or nil for a driver without any. A package of handles
// calls it when it is initialized.
func InstallSecretSource(of func(driver any) *SecretValues) {
	secretSources = append(secretSources, of)
}

// SecretsOf returns the values of drivers.
func SecretsOf(drivers []any) (s SecretSets) {
	for _, d := range drivers {
		for _, of := range secretSources {
			if hidden := of(d); hidden != nil {
				s = append(s, hidden)
			}
		}
	}
	return s
}

// None reports whether there are no values yet.
func (s SecretSets) None() bool {
	for _, h := range s {
		if h.replacer() != nil {
			return false
		}
	}
	return true
}

// Scrub removes the values from a text, also in base64, in hexadecimal, or
// escaped for a URL, for JSON, for Go or for HTML.
func (s SecretSets) Scrub(text string) string {
	for _, h := range s {
		if out := h.replacer(); out != nil {
			text = out.Replace(text)
		}
	}
	return text
}

// Scrub removes the values of opened secrets from a text of the call.
func (c *Call) Scrub(text string) string { return SecretsOf(c.cfg.Drivers).Scrub(text) }

// lineLength is the minimum length of a line of a value that is hidden by
// itself. A key of several lines is often shown line by line.
const lineLength = 8

// formsOf returns the texts as which a value is hidden.
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

// inBase64 returns a value in base64 alone, and its digits at any position in a
// longer text, such as user:value.
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

// inJSON returns a value inside a JSON string as the usual encoders write it.
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

// unicodes escapes the characters from one on as \u and four digits.
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

// numbers returns bytes as Go and other languages print a list.
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

// lowerPercent changes the digits of percent escapes to lower case.
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
