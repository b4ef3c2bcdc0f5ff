package schema

import (
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fastValidator accepts values of the schemas that most tools have: types,
// declared members, required ones, constant texts, bounds, patterns. It accepts
// only what the whole validator accepts. It passes all other values to the
// validator, which alone rejects and describes problems. A nil fastValidator
// accepts nothing.
type fastValidator struct {
	kinds    map[canon.Kind]bool // nil: any
	integer  bool                // a number must be whole
	texts    []string            // of an enum or a constant; nil: any
	length   bounds
	pattern  jsonschema.Regexp
	value    bounds
	members  map[string]*fastValidator
	open     bool // members can be anything
	required []string
	size     bounds
	element  *fastValidator
}

// bounds are inclusive.
type bounds struct{ least, most int64 }

func (b bounds) hold(n int64) bool { return b.least <= n && n <= b.most }

// quickWork bounds the number of values of one document here; the validator
// counts the work of larger ones itself.
const quickWork = 10_000

// newQuick returns nil for a schema with an unsupported keyword.
func newQuick(s *jsonschema.Schema) *fastValidator { return makeQuick(s, 8) }

func makeQuick(s *jsonschema.Schema, depth int) *fastValidator {
	if depth == 0 || s == nil || !onlyKnown(s) {
		return nil
	}
	q := &fastValidator{pattern: s.Pattern, required: s.Required, length: between(s.MinLength, s.MaxLength), size: between(s.MinItems, s.MaxItems)}
	if q.setTypes(s) && q.setTexts(s) && q.setValue(s) && q.setInside(s, depth) {
		return q
	}
	return nil
}

// onlyKnown reports whether a subschema has only supported keywords, and
// keywords that judge nothing.
func onlyKnown(s *jsonschema.Schema) bool {
	known := []string{
		"DraftVersion", "Location", "ID", "Types", "Enum", "Const", "Required", "Properties", "AdditionalProperties", "MinItems", "MaxItems", "Items2020",
		"MinLength", "MaxLength", "Pattern", "Maximum", "Minimum", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && !slices.Contains(known, f.Name) && !v.Field(i).IsZero() {
			return false
		}
	}
	return true
}

func between(least, most *int) bounds {
	b := bounds{0, 1 << 62}
	if least != nil {
		b.least = int64(*least)
	}
	if most != nil {
		b.most = int64(*most)
	}
	return b
}

func (q *fastValidator) setTypes(s *jsonschema.Schema) bool {
	if s.Types == nil || s.Types.IsEmpty() {
		return true
	}
	q.kinds = map[canon.Kind]bool{}
	types := s.Types.ToStrings()
	for _, t := range types {
		switch t {
		case "null":
			q.kinds[canon.Null] = true
		case "boolean":
			q.kinds[canon.Bool] = true
		case "string":
			q.kinds[canon.String] = true
		case "array":
			q.kinds[canon.Array] = true
		case "object":
			q.kinds[canon.Object] = true
		case "number", "integer":
			q.kinds[canon.Number] = true
		default:
			return false
		}
	}
	q.integer = slices.Contains(types, "integer") && !slices.Contains(types, "number")
	return true
}

func (q *fastValidator) setTexts(s *jsonschema.Schema) bool {
	var allowed []any
	switch {
	case s.Enum != nil && s.Const != nil:
		return false
	case s.Enum != nil:
		allowed = s.Enum.Values
	case s.Const != nil:
		allowed = []any{*s.Const}
	default:
		return true
	}
	q.texts = []string{}
	for _, v := range allowed {
		if text, ok := v.(string); ok { // other values are left to the validator
			q.texts = append(q.texts, text)
		}
	}
	return true
}

func (q *fastValidator) setValue(s *jsonschema.Schema) bool {
	q.value = bounds{-1 << 62, 1 << 62}
	return whole(s.Minimum, &q.value.least) && whole(s.Maximum, &q.value.most)
}

func whole(r *big.Rat, into *int64) bool {
	if r == nil {
		return true
	}
	*into = r.Num().Int64()
	return r.IsInt() && r.Num().IsInt64()
}

func (q *fastValidator) setInside(s *jsonschema.Schema, depth int) bool {
	if s.Items2020 != nil {
		if q.element = makeQuick(s.Items2020, depth-1); q.element == nil {
			return false
		}
	}
	// If members are declared, the walk checks the others, for misspelled
	// names.
	q.open = len(s.Properties) == 0 && len(s.Required) == 0 && (s.AdditionalProperties == nil || s.AdditionalProperties == true)
	q.members = make(map[string]*fastValidator, len(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if q.members[name] = makeQuick(s.Properties[name], depth-1); q.members[name] == nil {
			return false
		}
	}
	return true
}

// accepts reports whether the schema certainly accepts a value.
func (q *fastValidator) accepts(v canon.Value) bool {
	left := quickWork
	return q != nil && q.judge(v, &left)
}

func (q *fastValidator) judge(v canon.Value, left *int) bool {
	if *left--; *left < 0 || q.kinds != nil && !q.kinds[v.Kind()] {
		return false
	}
	if q.texts != nil && (v.Kind() != canon.String || !slices.Contains(q.texts, v.Text())) {
		return false
	}
	switch v.Kind() {
	case canon.String:
		return q.length.hold(int64(utf8.RuneCountInString(v.Text()))) && (q.pattern == nil || q.pattern.MatchString(v.Text()))
	case canon.Number:
		return q.number(v.Text())
	case canon.Array:
		return q.array(v, left)
	case canon.Object:
		return q.object(v, left)
	default:
		return v.Kind() == canon.Null || v.Kind() == canon.Bool
	}
}

// number judges integers, and other numbers if the schema has no condition for
// them.
func (q *fastValidator) number(text string) bool {
	if len(text) > 18 || strings.ContainsAny(text, ".e") {
		return !q.integer && q.value == bounds{-1 << 62, 1 << 62}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && q.value.hold(n)
}

func (q *fastValidator) array(v canon.Value, left *int) bool {
	if !q.size.hold(int64(v.Len())) || q.element == nil && v.Len() > 0 {
		return false
	}
	for _, e := range v.Elements() {
		if !q.element.judge(e, left) {
			return false
		}
	}
	return true
}

func (q *fastValidator) object(v canon.Value, left *int) bool {
	for _, name := range q.required {
		if _, there := v.Get(name); !there {
			return false
		}
	}
	for name, member := range v.Members() {
		declared, known := q.members[name]
		switch {
		case known && declared.judge(member, left):
		case !known && q.open && *left > 0:
			*left--
		default:
			return false
		}
	}
	return true
}
