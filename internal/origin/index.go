package origin

import (
	"hash/maphash"
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
	for _, sentence := range Sentences(text) {
		to.add(x.hashed(sentence), call, most)
	}
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

// Look returns where a value was seen. A number is compared as a number alone.
func (x *Index) Look(text string, isNumber bool) Origins {
	found := x.known(text, isNumber)
	if found == 0 {
		found = x.list(text)
	}
	if has(&x.seen, text) {
		found |= Untrusted
	}
	return found
}

// list returns the origins that all values of a list in one text have. The parts
// of a number are short, so it is no list of numbers.
func (x *Index) list(text string) Origins {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' })
	if len(parts) < 2 || len(parts) > 64 {
		return 0
	}
	found := Person | Config | Trusted
	for _, part := range parts {
		if part = strings.TrimSpace(part); Short(part) {
			return 0
		}
		found &= x.known(part, false)
	}
	return found
}

// known returns the origins of a value that are trusted.
func (x *Index) known(text string, isNumber bool) (found Origins) {
	if len(text) > 4*longest {
		return 0
	}
	tokens := exact(text)
	if len(tokens) == 0 {
		return 0
	}
	forms := [][]string{tokens}
	if account, is := Account(text); is && !isNumber {
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
		if x.known(v, false).Known() {
			own.piece(v)
			if effect {
				x.written.piece(v)
			}
			continue
		}
		own.add(v, mostOwn)
		own.unknown = own.unknown || own.over
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

// SeenExcept notes a text that shows trusted values once more, and untrusted
// content beside them.
func (x *Index) SeenExcept(text string, values []string) {
	except := map[string]bool{}
	for _, v := range values {
		for _, field := range strings.FieldsFunc(v, apart) {
			except[trim(field)] = true
		}
	}
	for _, field := range strings.FieldsFunc(text, apart) {
		if !except[trim(field)] {
			scan([]byte(field), false, x.seen.add)
		}
	}
}

// Returned adds the trusted values of the result of a call, unless outsiders
// can have chosen them. The untrusted content of the same result must be
// noted before.
func (x *Index) Returned(call string, values []string) {
	own := x.calls[call]
	//mutant:check
	if own == nil || own.unknown || x.written.unknown {
		return
	}
	for _, v := range values {
		//mutant:check
		if x.chosen(v, own) {
			continue
		}
		addText(&x.trusted, x, v, call, mostTrusted)
	}
}

// chosen reports whether a value of a trusted part of a result can be the choice
// of outsiders: it is in untrusted content, or a call was told it.
func (x *Index) chosen(v string, own *written) bool {
	if x.known(v, false).Known() {
		return false
	}
	//mutant:check
	if own.has(v) || x.written.has(v) {
		return true
	}
	if Short(v) {
		return false // many texts have it by accident
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
