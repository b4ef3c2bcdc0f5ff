package origin

import (
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"
)

// Origins are where a value was seen. The zero Origins are none: the model made
// the value.
type Origins uint8

// The origins.
const (
	Person    Origins = 1 << iota // a person said it
	Config                        // it is configured
	Trusted                       // a trusted part of a result has it
	Untrusted                     // untrusted content has it
)

// Known reports whether the value comes from anything that is trusted.
func (o Origins) Known() bool { return o&(Person|Config|Trusted) != 0 }

// Names returns the names of the origins, the most trusted first.
func (o Origins) Names() []string {
	names := []string{}
	for i, name := range []string{"person", "config", "trusted", "untrusted"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Digest replaces a word of a person on the journal.
type Digest [16]byte

// Bounds of an index. What a person said or a trusted result has beyond them
// has no origin. More that calls wrote than it can tell apart ends the trust in
// later results.
const (
	MostSaid    = 1 << 16 // words
	mostTrusted = 1 << 17 // words
	mostWritten = 1 << 13 // values
	longest     = 256     // bytes of a written value that is compared as a part of another
	mostOwn     = 1 << 10 // values of one call
)

// Index is where the values of a session were seen. The zero value is not
// usable; see New. It is not safe for concurrent use.
type Index struct {
	digest func(token string) Digest
	seed   maphash.Seed

	person  sequences[Digest]
	config  sequences[uint64]
	trusted sequences[uint64]
	seen    filter // untrusted content
	told    filter // what calls wrote
	written written
	calls   map[string]*written // what a call in flight was told; nil: unknown
}

// New returns an empty index. digest maps a word of a person to what the
// journal has of it.
func New(digest func(token string) Digest) *Index {
	return &Index{digest: digest, seed: maphash.MakeSeed(), calls: map[string]*written{}}
}

// Said adds the words of a person, in order, and the accounts among them.
func (x *Index) Said(words, accounts []Digest) {
	x.person.add(words, "", MostSaid)
	for _, a := range accounts {
		x.person.add([]Digest{a}, "", MostSaid)
	}
}

// Configured adds a configured text.
func (x *Index) Configured(text string) { addText(&x.config, x, text, "", mostTrusted) }

// addText adds the words and accounts of a text that is known in this process
// alone.
func addText(to *sequences[uint64], x *Index, text, call string, most int) {
	to.add(x.hashed(Tokens(text)), call, most)
	for _, a := range Joined(text) {
		to.add([]uint64{x.hash(a)}, call, most)
	}
}

func (x *Index) hash(token string) uint64 { return maphash.String(x.seed, token) }

func (x *Index) hashed(tokens []string) []uint64 {
	all := make([]uint64, len(tokens))
	for i, t := range tokens {
		all[i] = x.hash(t)
	}
	return all
}

// Look returns where a value was seen.
func (x *Index) Look(text string) Origins {
	found := x.known(text)
	if found == 0 { // several values in one text
		if parts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }); len(parts) > 1 && len(parts) <= 64 {
			found = Person | Config | Trusted
			for _, part := range parts {
				found &= x.known(part)
			}
		}
	}
	if has(&x.seen, text) {
		found |= Untrusted
	}
	return found
}

// known returns the origins of a value that are trusted.
func (x *Index) known(text string) (found Origins) {
	if len(text) > 4*longest {
		return 0
	}
	tokens := Tokens(text)
	if len(tokens) == 0 {
		return 0
	}
	forms := [][]string{tokens}
	if account, is := Account(text); is {
		forms = append(forms, []string{account})
	}
	for _, form := range forms {
		if x.person.has(form, x.digest) {
			found |= Person
		}
		if x.config.has(form, x.hash) {
			found |= Config
		}
		if x.trusted.has(form, x.hash) {
			found |= Trusted
		}
	}
	return found
}

// Short reports whether a value is so short that it is in many texts by
// accident.
func Short(text string) bool {
	if n, is := number(text); is {
		return len(strings.TrimLeft(n, "-")) < 4
	}
	return utf8.RuneCountInString(text) < 4 || text == "true" || text == "false" || text == "null"
}

// Begun notes the values that a call is told. If it can have an effect, a
// service can repeat them later, as they are or put together, and they get no
// trust by that. Without values they are unknown.
func (x *Index) Begun(call string, effect bool, values []string, known bool) {
	own := &written{unknown: !known}
	for _, v := range values {
		if x.known(v).Known() {
			continue
		}
		own.add(v, mostOwn)
		if effect {
			x.written.add(v, mostWritten)
			scan([]byte(v), false, x.told.add)
		}
	}
	x.written.unknown = x.written.unknown || effect && own.unknown
	x.calls[call] = own
}

// Seen notes untrusted content as a call returned it, in JSON or as plain text.
func (x *Index) Seen(content []byte, json bool) { scan(content, json, x.seen.add) }

// SeenExcept notes untrusted content in which trusted values are repeated.
func (x *Index) SeenExcept(content []byte, json bool, values []string) {
	except := map[uint64]bool{}
	for _, v := range values {
		scan([]byte(v), false, func(hash uint64) { except[hash] = true })
	}
	scan(content, json, func(hash uint64) {
		if !except[hash] {
			x.seen.add(hash)
		}
	})
}

// Returned adds the trusted values of the result of a call, unless outsiders
// can have chosen them. The untrusted content of the same result must be
// noted before.
func (x *Index) Returned(call string, values []string) {
	own := x.calls[call]
	if own == nil || own.unknown || x.written.unknown {
		return
	}
	for _, v := range values {
		if x.chosen(v, own) {
			continue
		}
		addText(&x.trusted, x, v, call, mostTrusted)
	}
}

// chosen reports whether a value of a trusted part of a result can be the choice
// of outsiders: it is in untrusted content, or a call was told it.
func (x *Index) chosen(v string, own *written) bool {
	if Short(v) || x.known(v).Known() {
		return false
	}
	return has(&x.seen, v) || has(&x.told, v) || own.makes(v) || x.written.makes(v)
}

// Ended forgets what a call in flight was told.
func (x *Index) Ended(call string) { delete(x.calls, call) }

// Forget removes the trusted values that a call returned.
func (x *Index) Forget(call string) { x.trusted.forget(call) }

// Blind ends the trust in later results: something that a call wrote is not
// known.
func (x *Index) Blind() { x.written.unknown = true }

// written are the values that calls were told and that had no trusted origin,
// without case and separators.
type written struct {
	all     map[string]bool
	long    map[string][]string // of four bytes and more, by the first four
	unknown bool
}

// window is how many bytes a written value has at least, if a value that
// contains it counts as written.
const window = 4

func (w *written) add(value string, most int) {
	value = bare(value)
	switch {
	case value == "" || len(value) > longest || w.all[value]:
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

// makes reports whether a value can be made of written ones: it contains a long
// one, or is put together of short ones.
func (w *written) makes(value string) bool {
	if value = bare(value); value == "" || len(w.all) == 0 {
		return false
	}
	reached := make([]bool, len(value)+1) // by short ones alone
	reached[0] = true
	for i := range len(value) {
		if i+window <= len(value) && slices.ContainsFunc(w.long[value[i:i+window]], func(p string) bool { return strings.HasPrefix(value[i:], p) }) {
			return true
		}
		for n := 1; reached[i] && n < window && i+n <= len(value); n++ {
			reached[i+n] = reached[i+n] || w.all[value[i:i+n]]
		}
	}
	return reached[len(value)]
}

// bare returns the letters and digits of a text, without case.
func bare(text string) string {
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		if c := folded[text[i]]; c != 0 {
			b = append(b, c)
		}
	}
	return string(b)
}
