package schema

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

const (
	draft = "https://json-schema.org/draft/2020-12/schema"
	// home is the URL of a schema without $id. The name is reserved and
	// resolves nowhere.
	home = "https://remit.invalid/schema"
	// maxParts bounds the subschemas of a document; the compiler behind this
	// package takes quadratic time in them.
	maxParts = 10_000
)

// refChecker walks a schema document and collects its references. It does not
// walk data inside a schema, such as an example. It walks unknown keywords,
// because a reference can lead into them.
type refChecker struct {
	root    canon.Value
	homes   map[string]bool // the URLs of the document and of parts with an $id
	anchors map[string]int
	dynamic map[string]int
	refs    []reference
	parts   int
	moved   bool // a part has an $id, so "#" may not mean the document
	foreign int  // number of enclosing unknown keywords
}

type reference struct {
	path    []string // of the keyword
	target  string   // as written
	url     string   // resolved, without fragment
	dynamic bool
}

// checkReach returns an error if a schema refers to anything outside itself.
func checkReach(v canon.Value) error {
	r := refChecker{root: v, homes: map[string]bool{home: true}, anchors: map[string]int{}, dynamic: map[string]int{}}
	base, err := url.Parse(home)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if v.Kind() != canon.Object && v.Kind() != canon.Bool {
		return schemaError(nil, "a schema is an object or a boolean, this is "+article(v.Kind().String()))
	}
	if err := r.schema(v, base, nil); err != nil {
		return err
	}
	for _, ref := range r.refs {
		if err := r.check(ref); err != nil {
			return err
		}
	}
	return nil
}

func schemaError(path []string, text string) error {
	return &PlaceError{Path: path, Text: text}
}

func (r *refChecker) schema(v canon.Value, base *url.URL, path []string) error {
	if r.parts++; r.parts > maxParts {
		return schemaError(nil, "more than "+strconv.Itoa(maxParts)+" subschemas")
	}
	base, err := r.identify(v, base, path)
	if err != nil {
		return err
	}
	for name, member := range v.Members() {
		at := append(slices.Clip(path), name)
		if err := r.keyword(name, member, base, at); err != nil {
			return err
		}
	}
	return nil
}

// identify records the name of a part and returns the base of the references
// inside it.
func (r *refChecker) identify(v canon.Value, base *url.URL, path []string) (*url.URL, error) {
	for keyword, names := range map[string]map[string]int{"$anchor": r.anchors, "$dynamicAnchor": r.dynamic} {
		if name, ok := v.Get(keyword); ok && name.Kind() == canon.String {
			names[name.Text()]++
		}
	}
	id, ok := v.Get("$id")
	if !ok || id.Kind() != canon.String {
		return base, nil
	}
	resolved, err := resolve(base, id.Text())
	if err != nil {
		return nil, schemaError(append(slices.Clip(path), "$id"), "not a URL")
	}
	r.moved = r.moved || len(path) > 0
	r.homes[withoutFragment(resolved)] = true
	return resolved, nil
}

func (r *refChecker) keyword(name string, v canon.Value, base *url.URL, path []string) error {
	switch name {
	case "$schema":
		if v.Kind() == canon.String && strings.TrimSuffix(v.Text(), "#") != draft {
			return schemaError(path, "another draft, want "+strconv.Quote(draft))
		}
		return nil
	case "$ref", "$dynamicRef":
		return r.reference(v, base, path)
	case "$recursiveRef":
		return schemaError(path, "$recursiveRef is of another draft, use $ref or $dynamicRef")
	case "const", "enum", "default", "examples":
		return nil
	case "pattern":
		return r.pattern(v.Text(), path)
	case "patternProperties":
		for pattern := range v.Members() {
			if err := r.pattern(pattern, append(slices.Clip(path), pattern)); err != nil {
				return err
			}
		}
		return r.schemas(v, base, path)
	case "properties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return r.schemas(v, base, path)
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "prefixItems", "contains", "unevaluatedItems",
		"additionalProperties", "propertyNames", "unevaluatedProperties", "contentSchema":
		return r.anything(v, base, path)
	default:
		r.foreign++
		defer func() { r.foreign-- }()
		return r.anything(v, base, path)
	}
}

// pattern rejects an invalid regular expression here, where its place is known,
// instead of in the compiler.
func (r *refChecker) pattern(text string, path []string) error {
	if r.foreign > 0 {
		return nil
	}
	if _, err := regexp.Compile(text); err != nil {
		return schemaError(path, "not a regular expression that Go knows: "+reason(err))
	}
	return nil
}

// schemas walks an object whose members are schemas under free names.
func (r *refChecker) schemas(v canon.Value, base *url.URL, path []string) error {
	for name, member := range v.Members() {
		if err := r.anything(member, base, append(slices.Clip(path), name)); err != nil {
			return err
		}
	}
	return nil
}

// anything walks a schema, a list of schemas, or another value.
func (r *refChecker) anything(v canon.Value, base *url.URL, path []string) error {
	if v.Kind() == canon.Object || v.Kind() == canon.Bool {
		return r.schema(v, base, path)
	}
	for i, e := range v.Elements() {
		if err := r.anything(e, base, append(slices.Clip(path), strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

func (r *refChecker) reference(v canon.Value, base *url.URL, path []string) error {
	if v.Kind() != canon.String {
		return schemaError(path, "is "+article(v.Kind().String())+", want a string")
	}
	resolved, err := resolve(base, v.Text())
	if err != nil {
		return schemaError(path, "not a URL")
	}
	ref := reference{path: path, target: v.Text(), url: withoutFragment(resolved), dynamic: path[len(path)-1] == "$dynamicRef"}
	r.refs = append(r.refs, ref)
	return nil
}

// check checks one reference after the whole document is read.
func (r *refChecker) check(ref reference) error {
	if !strings.HasPrefix(ref.target, "#") && !r.homes[ref.url] {
		return schemaError(ref.path, "refers to "+strconv.Quote(cut(ref.target))+
			`, which is outside the schema, want a reference inside it such as "#/$defs/name"`)
	}
	_, fragment, _ := strings.Cut(ref.target, "#")
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	if ref.dynamic && r.dynamic[fragment] > 1 {
		return schemaError(ref.path, "refers to a $dynamicAnchor that occurs more than once, want it once")
	}
	if !r.leads(fragment) {
		return schemaError(ref.path, "refers to "+strconv.Quote(cut(ref.target))+", which is not there")
	}
	return nil
}

// leads reports whether a fragment names a part. If "#" can mean several
// places, the compiler decides.
func (r *refChecker) leads(fragment string) bool {
	if fragment == "" || r.moved {
		return true
	}
	if !strings.HasPrefix(fragment, "/") {
		return r.anchors[fragment]+r.dynamic[fragment] > 0
	}
	v := r.root
	for _, token := range strings.Split(fragment[1:], "/") {
		next, ok := step(v, strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
		if !ok {
			return false
		}
		v = next
	}
	return true
}

// step follows one token of a JSON Pointer.
func step(v canon.Value, token string) (canon.Value, bool) {
	if v.Kind() == canon.Object {
		return v.Get(token)
	}
	for i, e := range v.Elements() {
		if strconv.Itoa(i) == token {
			return e, true
		}
	}
	return canon.Value{}, false
}

func resolve(base *url.URL, text string) (*url.URL, error) {
	ref, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	resolved := base.ResolveReference(ref)
	if !ref.IsAbs() && base.Opaque != "" { // a URN has no path for a relative reference
		resolved.Opaque = base.Opaque
	}
	return resolved, nil
}

func withoutFragment(u *url.URL) string {
	text, _, _ := strings.Cut(u.String(), "#")
	return text
}
