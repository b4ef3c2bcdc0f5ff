package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compile passes a self-contained document to the validator. The empty loader
// is a second protection: it cannot read anything.
func compile(v canon.Value) (compiled *jsonschema.Schema, err error) {
	defer func() {
		// The compiler panics on states that it considers impossible, and a
		// schema may come from an untrusted source.
		if p := recover(); p != nil {
			compiled, err = nil, fmt.Errorf("%w: the schema compiler gave up on it", ErrSchema)
		}
	}()
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(home, v.Any()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	compiled, err = c.Compile(home)
	if err != nil {
		return nil, compileError(err)
	}
	return compiled, nil
}

// compileError says in this package's words which place of a schema is wrong,
// and why.
func compileError(err error) error {
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](bad.Err); ok {
			d := describer{words: messageText{whole: "the schema", part: "at"}}
			if problems := tidy(d.flatten(invalid)); len(problems) > 0 {
				first := &PlaceError{Path: problems[0].path, Text: problems[0].text}
				for _, p := range problems[1:] {
					first.More = append(first.More, &PlaceError{Path: p.path, Text: p.text})
				}
				return first
			}
		}
	}
	if _, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return outside()
	}
	return fmt.Errorf("%w: %w", ErrSchema, err)
}

// outside is the error for a reference that only the compiler saw, because its
// path leads through data.
func outside() error {
	return fmt.Errorf("%w: it refers to something outside itself, by way of a default, an example or a constant", ErrSchema)
}

// reason keeps the text of a regular expression's error and drops the
// expression, which can be long.
func reason(err error) string {
	text := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	text, _, _ = strings.Cut(text, ": `")
	return text
}

// location returns the path at the end of a schema's URL.
func location(schemaURL string) []string {
	_, fragment, _ := strings.Cut(schemaURL, "#")
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	if fragment == "" {
		return nil
	}
	tokens := strings.Split(strings.TrimPrefix(fragment, "/"), "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return tokens
}
