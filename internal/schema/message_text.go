package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// messageText holds the words for the whole value and for its parts.
type messageText struct{ whole, part string }

// list joins problems to one text, each with the name of its place.
func (w messageText) list(problems []problem) string {
	var texts []string
	for _, p := range problems[:min(len(problems), maxProblems)] {
		texts = append(texts, w.name(p.path)+" "+p.text)
	}
	if more := len(problems) - maxProblems; more > 0 {
		texts = append(texts, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(texts, "; ")
}

// name returns a readable name of a place: argument "edits[0].text".
func (w messageText) name(path []string) string {
	if len(path) == 0 {
		return w.whole
	}
	var b strings.Builder
	for i, token := range path {
		switch {
		case b.Len() > 200:
			return w.part + " " + strconv.Quote(b.String()+"…")
		case i > 0 && token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + cut(token) + "]")
		case i > 0:
			b.WriteString("." + cut(token))
		default:
			b.WriteString(cut(token))
		}
	}
	return w.part + " " + strconv.Quote(b.String())
}

// forms describes, for each possible form, the first problem that rejects the
// value.
func (w messageText) forms(forms [][]problem) string {
	const shown = 4
	var texts []string
	for i, form := range forms[:min(len(forms), shown)] {
		texts = append(texts, fmt.Sprintf("(%d) %s %s", i+1, w.name(form[0].path), form[0].text))
	}
	text := fmt.Sprintf("fits none of %d allowed forms: %s", len(forms), strings.Join(texts, ", or "))
	if len(forms) > shown {
		text += ", or others"
	}
	return text
}

func (p problem) typeText() string {
	got := article(p.got)
	if p.got == "number" && slices.Contains(p.want, "integer") {
		got = "a number with a fraction"
	}
	return "is " + got + ", want " + oneOf(p.want)
}

// oneOf lists types, null last, because a value is seldom meant to be null.
func oneOf(types []string) string {
	var texts []string
	null := false
	for _, t := range types {
		if t == "null" {
			null = true
			continue
		}
		texts = append(texts, article(t))
	}
	if null {
		texts = append(texts, "null")
	}
	return strings.Join(texts, " or ")
}

func article(typeName string) string {
	switch typeName {
	case "null":
		return "null"
	case "integer", "array", "object":
		return "an " + typeName
	default:
		return "a " + typeName
	}
}

// textOf describes a failed keyword by its requirement.
func textOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Enum:
		return "has another value, want " + values(k.Want)
	case *kind.Const:
		return "has another value, want " + values([]any{k.Want})
	case *kind.Not:
		return "is what the schema rules out"
	case *kind.MinLength:
		return "is too short, want at least " + count(k.Want, "character")
	case *kind.MaxLength:
		return "is too long, want at most " + count(k.Want, "character")
	case *kind.Pattern:
		return "does not match the pattern " + cut(k.Want)
	case *kind.Minimum:
		return "is too small, want at least " + decimal(k.Want)
	case *kind.Maximum:
		return "is too large, want at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "is too small, want more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "is too large, want less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "is no multiple of " + decimal(k.Want)
	default:
		return textOfSize(k)
	}
}

func textOfSize(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinItems:
		return "has too few items, want at least " + strconv.Itoa(k.Want)
	case *kind.MaxItems:
		return "has too many items, want at most " + strconv.Itoa(k.Want)
	case *kind.UniqueItems:
		return "has two equal items, want each once"
	case *kind.Contains:
		return "has no item of the wanted form, want at least 1"
	case *kind.MinContains:
		return "has too few items of the wanted form, want at least " + strconv.Itoa(k.Want)
	case *kind.MaxContains:
		return "has too many items of the wanted form, want at most " + strconv.Itoa(k.Want)
	case *kind.MinProperties:
		return "has too few members, want at least " + strconv.Itoa(k.Want)
	case *kind.MaxProperties:
		return "has too many members, want at most " + strconv.Itoa(k.Want)
	default:
		return "does not match its schema"
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// values lists the values of an enum. These come from the schema, not from the
// value.
func values(allowed []any) string {
	const shown = 20
	var texts []string
	for _, v := range allowed[:min(len(allowed), shown)] {
		text, err := canon.Marshal(v)
		if err != nil {
			continue
		}
		texts = append(texts, cut(string(text)))
	}
	list := strings.Join(texts, ", ")
	if len(allowed) > shown {
		list += fmt.Sprintf(" or %d others", len(allowed)-shown)
	}
	if len(texts) == 1 {
		return list
	}
	return "one of " + list
}

// decimal writes a number of the schema exactly; the schema had it as a
// decimal.
func decimal(r *big.Rat) string {
	places, _ := r.FloatPrec()
	text := r.FloatString(places)
	if short, err := canon.Canonicalize([]byte(text), canon.DefaultLimits()); err == nil {
		return string(short)
	}
	return cut(text)
}

// cut shortens a text from the document.
func cut(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func dedupe(texts []string) []string {
	var kept []string
	for _, t := range texts {
		if !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}
