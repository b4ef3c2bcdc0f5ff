package definition

import (
	"slices"
	"strings"
	"unicode"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pointer"
	"github.com/remit-dev/remit/provenance"
)

// Bounds of what is drafted for one tool.
const (
	maxDraftDepth  = 6
	maxDraftPlaces = 64
)

// DraftRoles guesses what the arguments do, from formats and names of the input
// schema. A person has to read it: the server chose both. An argument without a
// known name has no role, which means authority.
func (d Definition) DraftRoles() provenance.Roles {
	roles := provenance.Roles{}
	reads := d.Hints.ReadOnly != nil && *d.Hints.ReadOnly
	eachLeaf(d.input, "", "", 0, func(place, name string, leaf canon.Value) {
		if role := roleOf(name, leaf, reads); role != "" && len(roles) < maxDraftPlaces {
			roles[place] = role
		}
	})
	if len(roles) == 0 {
		return nil
	}
	return roles
}

// DraftTrustedFields guesses which fields of the structured content only the
// service chooses: identifiers, times of its own, and counts. It is never a
// text.
func (d Definition) DraftTrustedFields() (fields []string) {
	eachLeaf(d.output, "", "", 0, func(place, name string, leaf canon.Value) {
		if ofService(place, name, leaf) && len(fields) < maxDraftPlaces {
			fields = append(fields, place)
		}
	})
	slices.Sort(fields)
	return fields
}

// eachLeaf calls do for each declared part of a value that declares no parts. A
// list of such parts is one, too.
func eachLeaf(declared canon.Value, place, name string, depth int, do func(place, name string, leaf canon.Value)) {
	if depth > maxDraftDepth || declared.Kind() != canon.Object {
		return
	}
	if properties, _ := declared.Get("properties"); properties.Kind() == canon.Object {
		for member, of := range properties.Members() {
			if member != "*" { // as a pointer it stands for all members
				eachLeaf(of, pointer.Join(place, member), member, depth+1, do)
			}
		}
		return
	}
	if items, _ := declared.Get("items"); items.Kind() == canon.Object {
		eachLeaf(items, place+"/*", name, depth+1, do)
		return
	}
	if place != "" {
		do(place, name, declared)
	}
}

// Names of arguments, in the singular. Those of authority and of contents are the
// last word of a name.
var (
	authorityNames = []string{
		"to", "cc", "bcc", "recipient", "receiver", "from", "sender", "user", "username", "owner", "assignee", "attendee", "participant", "member",
		"email", "address", "phone", "url", "uri", "link", "href", "host", "domain", "path", "file", "filename", "folder", "directory", "repo", "repository",
		"branch", "channel", "chat", "account", "iban", "bic", "amount", "price", "quantity", "currency", "id", "key", "command", "role", "permission", "scope",
	}
	contentNames  = []string{"body", "text", "message", "content", "note", "title", "subject", "description", "comment", "summary", "date"}
	selectorNames = []string{"page", "page_size", "per_page", "page_token", "offset", "cursor", "sort", "sort_by", "order_by"}
	// searchNames are those of a tool that reads. Elsewhere a limit is one of an
	// account, and an order one of goods.
	searchNames = []string{"query", "q", "search", "search_query", "filter", "pattern", "limit", "max_result", "order"}

	authorityFormats = []string{
		"email", "idn-email", "uri", "uri-reference", "iri", "iri-reference", "hostname", "idn-hostname", "ipv4", "ipv6", "uuid", "iban",
	}
)

// roleOf returns the likely role of an argument, or "".
func roleOf(name string, leaf canon.Value, reads bool) provenance.Role {
	words := wordsOf(name)
	last := words[len(words)-1]
	format, _ := leaf.Get("format")
	switch whole := strings.Join(words, "_"); {
	case slices.Contains(authorityFormats, format.Text()), slices.Contains(authorityNames, last):
		return provenance.Authority
	case slices.Contains(selectorNames, whole), reads && slices.Contains(searchNames, whole):
		return provenance.Selector
	case slices.Contains(contentNames, last) && has(leaf, "string"):
		return provenance.Payload
	}
	return ""
}

// ofService reports whether the service alone is likely to choose a field.
func ofService(place, name string, leaf canon.Value) bool {
	words := wordsOf(name)
	first, last := words[0], words[len(words)-1]
	if slices.ContainsFunc(wordsOf(place), func(word string) bool { return slices.Contains(others, word) }) {
		return false
	}
	format, _ := leaf.Get("format")
	number := has(leaf, "integer") || has(leaf, "number")
	text := has(leaf, "string")
	switch {
	case slices.Contains([]string{"id", "uuid", "guid"}, last) && (text || number):
		return true
	case slices.Contains([]string{"created", "updated", "modified", "deleted"}, first) && len(words) <= 2:
		return number || text && slices.Contains([]string{"date-time", "date", "time"}, format.Text())
	}
	return number && last == "count"
}

// others are words of fields that another person or system chose, or that name
// one: a sender does not choose its identifier, but chooses to send.
var others = []string{
	"external", "client", "custom", "foreign", "reference", "sender", "from", "author", "user", "owner", "creator", "customer", "contact", "person",
	"member", "attendee", "participant", "assignee", "organizer", "account", "by",
}

// has reports whether a schema names a type.
func has(leaf canon.Value, name string) bool {
	types, _ := leaf.Get("type")
	if types.Text() == name {
		return true
	}
	for _, one := range types.Elements() {
		if one.Text() == name {
			return true
		}
	}
	return false
}

// wordsOf returns the words of a name in lower case, without the s of a plural.
func wordsOf(name string) (words []string) {
	var b strings.Builder
	end := func() {
		word := strings.ToLower(b.String())
		if b.Reset(); len(word) > 2 && !strings.HasSuffix(word, "ss") {
			word = strings.TrimSuffix(word, "s")
		}
		if word != "" {
			words = append(words, word)
		}
	}
	lower := false
	for _, r := range name {
		switch upper := unicode.IsUpper(r); {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			lower = false
			continue
		case upper && lower:
			end()
			fallthrough
		default:
			lower = !upper
		}
		b.WriteRune(r)
	}
	if end(); len(words) == 0 {
		return []string{""}
	}
	return words
}
