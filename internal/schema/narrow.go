package schema

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// WiderError says at which place a schema may accept what another one refuses.
type WiderError struct {
	Path []string // member names and indexes that lead to the place in the schema
	Text string
}

// Error names the place.
func (e *WiderError) Error() string {
	if len(e.Path) == 0 {
		return e.Text
	}
	return canon.Place(e.Path) + ": " + e.Text
}

// CheckNarrower returns nil where every value that now accepts is one that was accepts, for
// sure. What it cannot prove by looking at the two documents side by side it refuses, with
// a WiderError: it knows narrower bounds, fewer types and alternatives, more required
// members, optional members of closed objects that went, and keywords that only add a
// condition. Words for people may change anywhere. Where a condition may count against
// what it stands in (under "not", in what is referred to, or beside "unevaluated…"),
// nothing else may change.
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
	tied string // why only words may change; empty: bounds may too
}

// survey looks for what ties places of a schema to others. It takes data for keywords, too,
// where that cannot be told.
func (n *narrowing) survey(v canon.Value) {
	for name, member := range v.Members() {
		switch name {
		case "$ref":
			if member.Kind() == canon.String && !strings.HasPrefix(member.Text(), "#/$defs/") { // which may not change
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

// prose are keywords that change nothing about what is accepted.
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

// keyword judges one keyword that is new or another than it was; old is the zero Value where
// it is new.
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
		if fresh && n.tied == "" { // anything was accepted
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

// filledIn judges a default that is new or another: it must be an argument that somebody could
// give.
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

// properties judges the members of an object. One that went is refused by the object only
// where that takes no others.
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

// all judges conditions that hold together: each may become narrower, and more may come.
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

// any judges alternatives: each is a narrower one of those there were.
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
