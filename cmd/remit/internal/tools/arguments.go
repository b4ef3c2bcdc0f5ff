package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// argument is the part of a schema that the list of arguments shows.
type argument struct {
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Default     json.RawMessage `json:"default"`
}

// writeArguments lists the arguments of a tool: the required ones first.
func writeArguments(p cli.Style, w io.Writer, schema json.RawMessage) {
	var s struct {
		Properties map[string]argument `json:"properties"`
		Required   []string            `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		_, _ = fmt.Fprintf(w, "    %s --json shows the schema\n", p.Faint("args    "))
		return
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if need := slices.Contains(s.Required, b); slices.Contains(s.Required, a) != need {
			return map[bool]int{true: 1, false: -1}[need]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		arg := s.Properties[name]
		words := []string{p.Bold(cli.Printable(name)), cli.Printable(arg.kind())}
		if slices.Contains(s.Required, name) {
			words = append(words, "required")
		} else if len(arg.Default) > 0 {
			words = append(words, "default "+cli.Printable(string(arg.Default)))
		}
		if arg.Description != "" {
			words = append(words, p.Faint(cli.Printable(arg.Description)))
		}
		_, _ = fmt.Fprintf(w, "    %s %s\n", p.Faint("arg     "), strings.Join(words, "  "))
	}
}

// kind describes the values that an argument takes.
func (a argument) kind() string {
	var all []string
	for _, v := range a.Enum {
		all = append(all, fmt.Sprint(v))
	}
	switch t := a.Type.(type) {
	case string:
		if len(all) == 0 {
			return t
		}
	case []any:
		if len(all) == 0 {
			for _, one := range t {
				all = append(all, fmt.Sprint(one))
			}
		}
	}
	if len(all) == 0 {
		return "any value"
	}
	return strings.Join(all, " or ")
}
