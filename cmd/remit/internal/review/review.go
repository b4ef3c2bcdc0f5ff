package review

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// longest is how many characters a description may have.
const longest = 200

// snake is how tools and arguments are named.
var snake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// Finding is one thing to mend.
type Finding struct {
	Tool string `json:"tool"`
	Path string `json:"path"` // JSON Pointer into the object that remit tools --json writes
	Rule string `json:"rule"`
	What string `json:"what"`
	Fix  string `json:"fix"`
}

// Tools looks at tools that are offered together. The findings stand in the order of the
// tools, and of each in that of its declaration.
func Tools(tools ...tool.Tool) []Finding {
	r := &reviewer{}
	for i, t := range tools {
		r.tool(t)
		for _, other := range tools[:i] {
			r.similarTools(t, other)
		}
	}
	return r.found
}

// reviewer collects what is found of one tool after the other.
type reviewer struct {
	found []Finding
	name  string
	root  canon.Value // the input schema
}

func (r *reviewer) warn(path, rule, fix, what string, args ...any) {
	r.found = append(r.found, Finding{r.name, path, rule, fmt.Sprintf(what, args...), fix})
}

func (r *reviewer) tool(t tool.Tool) {
	s := t.Spec()
	r.name = t.Name()
	if !snake.MatchString(s.Name) {
		r.warn("/name", "name", "separate words by one underscore", "the name is not snake_case")
	}
	switch n := utf8.RuneCountInString(s.Description); {
	case n == 0:
		r.warn("/description", "description", "say in a sentence what it does, and when not to use it", "the description is missing: a model knows nothing else of the tool")
	case n > longest:
		r.warn("/description", "description", "keep to what tells it from other tools; arguments have descriptions of their own", "the description has %d characters, more than %d", n, longest)
	}
	if s.Input != nil { // else it is one text
		if v, err := canon.Parse(s.Input, canon.DefaultLimits()); err == nil {
			r.root = v
			r.schema(v, "/input", 0)
		}
	}
	r.effects(t, s)
}

// effects reports declarations whose effect the runtime cannot verify or
// revert.
func (r *reviewer) effects(t tool.Tool, s tool.Spec) {
	const verify = "declare a Verify that looks at the effect"
	held := s.Confinement == tool.Handles || s.Confinement == tool.Sandbox
	switch class := t.Class(); {
	case s.EffectClass == "":
		r.warn("/effect_class", "effect_class", "declare what undo can do: tool.Effect, tool.Pure", "no effect class is declared, so it counts as pivot: it cannot be reverted")
	case class != effect.Pure && s.Verify == nil && !held:
		r.warn("/effect_class", "verify", verify, "it is %s and has no Verify: after a crash it cannot be determined whether a call had its effect", class)
	case (class == effect.Reversible || class == effect.Compensable) && s.Verify == nil:
		r.warn("/effect_class", "verify", verify, "it is %s and has no Verify: that a call did what it should is not looked at", class)
	}
	if s.Revert != nil && s.UndoVersion == "" {
		r.warn("/effect_class", "revert", "name the version of the undo: tool.RevertWith(version, …)", "its Revert has no version: another build may revert calls differently")
	}
	if t.Class() == effect.Deferrable && s.Revert == nil {
		r.warn("/effect_class", "revert", "declare a Revert if a compensation exists", "a held call cannot be reverted after its release")
	}
	if t.Grade() == provenance.Ungraded {
		r.warn("/digest", "grade", "run the fault kit over it: docs/guides/grade.md", "the fault kit has not graded this declaration")
	}
}
