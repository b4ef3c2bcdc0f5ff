package schema

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// WiderError names the place at which a schema may accept values that another
// one rejects.
type WiderError struct {
	Path []string // member names and indexes of the place in the schema
	Text string
}

// Error names the place.
func (e *WiderError) Error() string {
	if len(e.Path) == 0 {
		return e.Text
	}
	return canon.Place(e.Path) + ": " + e.Text
}

// CheckNarrower returns nil if every value that now accepts is certainly
// accepted by was. It returns a WiderError for everything that it cannot prove
// by comparing the two documents. It recognizes narrower bounds, fewer types
// and alternatives, more required members, removed optional members of closed
// objects, and keywords that only add a condition. Texts for people may change
// anywhere. Under "not", in the target of a reference, or beside
// "unevaluated…", a condition may have the opposite effect, so only texts may
// change there.
func CheckNarrower(now, was canon.Value) error {
	n := narrowing{}
	n.survey(was)
	n.survey(now)
	if err := n.compare(now, was, nil); err != nil {
		return err
	}
	return nil
}

// narrowing is one comparison.
type narrowing struct {
	tied string // why only texts may change; empty: bounds may too
}

// survey finds keywords that connect places of a schema. It treats data as
// keywords if it cannot distinguish them.
func (n *narrowing) survey(v canon.Value) {
	for name, member := range v.Members() {
		switch name {
		case "$ref":
			if member.Kind() == canon.String && !strings.HasPrefix(member.Text(), "#/$defs/") { // which must not change
				n.tied = name
			}
		case "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor":
			if member.Kind() == canon.String {
				n.tied = name
			}
		case "unevaluatedProperties", "unevaluatedItems":
			n.tied = name
		}
		n.survey(member)
	}
	for _, e := range v.Elements() {
		n.survey(e)
	}
}

func same(a, b canon.Value) bool { return bytes.Equal(a.Canonical(), b.Canonical()) }

func wider(path []string, format string, args ...any) error {
	return &WiderError{slices.Clone(path), fmt.Sprintf(format, args...)}
}

// prose lists keywords that do not affect which values are accepted.
var prose = []string{"title", "description", "$comment", "examples", "deprecated", "readOnly", "writeOnly"}

func (n *narrowing) compare(now, was canon.Value, path []string) error {
	switch {
	case same(now, was), was.Kind() == canon.Bool && was.Bool() && n.tied == "", now.Kind() == canon.Bool && !now.Bool() && n.tied == "":
		return nil
	case now.Kind() != canon.Object || was.Kind() != canon.Object:
		return wider(path, "it cannot be shown to accept less than it did")
	}
	for name := range was.Members() {
		if _, there := now.Get(name); !there && !slices.Contains(prose, name) {
			return wider(path, "%q is gone, which may accept more", name)
		}
	}
	for name, member := range now.Members() {
		old, there := was.Get(name)
		if slices.Contains(prose, name) || there && same(member, old) {
			continue
		}
		at := append(slices.Clone(path), name)
		if n.tied != "" && !slices.Contains([]string{"properties", "items", "additionalProperties", "allOf", "anyOf"}, name) {
			return wider(at, "the schema has %q, so only descriptions in it may change", n.tied)
		}
		if err := n.keyword(name, member, old, now, was, at); err != nil {
			return err
		}
	}
	return nil
}

// keyword judges one new or changed keyword; old is the zero Value if it is
// new.
func (n *narrowing) keyword(name string, member, old, now, was canon.Value, at []string) error {
	fresh := old.Kind() == canon.Invalid
	switch name {
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		return bounded(member, at, fresh || number(member).Cmp(number(old)) >= 0, "higher")
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		return bounded(member, at, fresh || number(member).Cmp(number(old)) <= 0, "lower")
	case "multipleOf":
		ok := fresh || number(old).Sign() > 0 && new(big.Rat).Quo(number(member), number(old)).IsInt()
		return bounded(member, at, ok, "a multiple of what it was")
	case "enum":
		return elements(member, old, at, fresh)
	case "type":
		return types(member, old, at, fresh)
	case "required":
		return required(member, old, at, fresh)
	case "uniqueItems":
		return allowed(at, fresh || member.Bool(), "it may only become true")
	case "const", "pattern", "format", "oneOf", "not":
		return allowed(at, fresh, "it may be added where there is none, and not be changed")
	case "default":
		return filledIn(member, now, at)
	case "properties":
		return n.properties(member, old, now, was, at)
	case "additionalProperties", "items":
		if fresh && n.tied == "" { // any value was accepted
			return nil
		}
		if name == "items" && !sameAt(now, was, "prefixItems") {
			return wider(at, "it cannot change together with prefixItems")
		}
		return n.compare(member, old, at)
	case "allOf":
		return n.all(member, old, at)
	case "anyOf":
		return n.any(member, old, at, fresh)
	}
	return wider(at, "a change of this keyword cannot be shown to accept less")
}

func allowed(at []string, ok bool, why string) error {
	if !ok {
		return wider(at, "%s", why)
	}
	return nil
}

func bounded(member canon.Value, at []string, ok bool, only string) error {
	if member.Kind() != canon.Number {
		return wider(at, "it is no number")
	}
	return allowed(at, ok, "it may only become "+only)
}

func number(v canon.Value) *big.Rat {
	r, ok := new(big.Rat).SetString(v.Text())
	if !ok || v.Kind() != canon.Number {
		return new(big.Rat)
	}
	return r
}

func sameAt(a, b canon.Value, name string) bool {
	x, _ := a.Get(name)
	y, _ := b.Get(name)
	return same(x, y)
}

func list(v canon.Value) (out []canon.Value) {
	if v.Kind() == canon.String {
		return []canon.Value{v}
	}
	for _, e := range v.Elements() {
		out = append(out, e)
	}
	return out
}

func has(all []canon.Value, v canon.Value) bool {
	return slices.ContainsFunc(all, func(o canon.Value) bool { return same(o, v) })
}

func elements(member, old canon.Value, at []string, fresh bool) error {
	if member.Len() == 0 {
		return wider(at, "it is empty, and nothing would be valid")
	}
	for _, e := range list(member) {
		if !fresh && !has(list(old), e) {
			return wider(at, "it has a value that it did not have")
		}
	}
	return nil
}

func types(member, old canon.Value, at []string, fresh bool) error {
	for _, e := range list(member) {
		integer := e.Text() == "integer" && slices.ContainsFunc(list(old), func(o canon.Value) bool { return o.Text() == "number" })
		if !fresh && !integer && !has(list(old), e) {
			return wider(at, "it has a type that it did not have")
		}
	}
	return nil
}

func required(member, old canon.Value, at []string, fresh bool) error {
	for _, e := range list(old) {
		if !fresh && !has(list(member), e) {
			return wider(at, "a member that was required no longer is")
		}
	}
	return nil
}

// filledIn judges a new or changed default: it must be a valid argument.
func filledIn(member, now canon.Value, at []string) error {
	s, err := Compile(now.Canonical())
	if err != nil {
		return wider(at, "what refers to other places of the schema can have no other default")
	}
	if err := s.Validate(member); err != nil {
		return wider(at, "the schema beside it refuses it")
	}
	return nil
}

// properties judges the members of an object. A removed member is rejected only
// if the object accepts no other members.
func (n *narrowing) properties(member, old, now, was canon.Value, at []string) error {
	more, closed := now.Get("additionalProperties")
	closed = closed && more.Kind() == canon.Bool && !more.Bool()
	_, patterns := now.Get("patternProperties")
	for name, of := range old.Members() {
		if _, there := member.Get(name); there {
			continue
		}
		_, filled := of.Get("default")
		needed, _ := now.Get("required")
		where := append(slices.Clone(at), name)
		switch {
		case n.tied != "":
			return wider(where, "the schema has %q, so only descriptions in it may change", n.tied)
		case !closed || patterns:
			return wider(where, "it is gone, and the object takes members that it does not declare: anything would do for it")
		case slices.ContainsFunc(list(needed), func(r canon.Value) bool { return r.Text() == name }):
			return wider(where, "it is gone, and required")
		case filled:
			return wider(where, "it is gone, and the tool counts on its default: give it an enum of one value instead")
		}
	}
	for name, is := range member.Members() {
		where := append(slices.Clone(at), name)
		if of, there := old.Get(name); there {
			if err := n.compare(is, of, where); err != nil {
				return err
			}
			continue
		}
		before, limited := was.Get("additionalProperties")
		_, patterns := was.Get("patternProperties")
		if n.tied != "" || patterns || limited && (before.Kind() != canon.Bool || !before.Bool()) {
			return wider(where, "it is a member that there was not")
		}
	}
	return nil
}

// all judges conditions that hold together: each may become narrower, and new
// ones may be added.
func (n *narrowing) all(member, old canon.Value, at []string) error {
	now := list(member)
	for i, was := range list(old) {
		if i >= len(now) {
			return wider(at, "a condition is gone")
		}
		if err := n.compare(now[i], was, append(slices.Clone(at), fmt.Sprint(i))); err != nil {
			return err
		}
	}
	return allowed(at, n.tied == "" || len(now) == old.Len(), "the schema has "+n.tied+", so only descriptions in it may change")
}

// any judges alternatives: each must be narrower than one of the old ones.
func (n *narrowing) any(member, old canon.Value, at []string, fresh bool) error {
	if fresh && n.tied == "" {
		return nil
	}
	for i, is := range list(member) {
		var first error
		for _, was := range list(old) {
			err := n.compare(is, was, append(slices.Clone(at), fmt.Sprint(i)))
			if err == nil {
				first = nil
				break
			}
			if first == nil {
				first = err
			}
		}
		if first != nil || old.Len() == 0 {
			return wider(append(slices.Clone(at), fmt.Sprint(i)), "it is no narrower form of an alternative that there was")
		}
	}
	return allowed(at, n.tied == "" || member.Len() == old.Len(), "the schema has "+n.tied+", so only descriptions in it may change")
}
