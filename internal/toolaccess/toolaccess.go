// Package toolaccess gives this module what package tool hides from tool
// authors: the compiled schemas of a tool, how a call is admitted, and the
// declarations that only this module may make.
//
// The call pipeline and package compose import package tool and need more of
// it than its exported names. Package tool cannot import them. So it installs
// its internals here when it is initialized, and the others take them from
// here. A program outside this module cannot import this package.
package toolaccess

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// Internals are the internals of package tool. The type parameters are its
// types Tool, Spec, Registry and RevertContext, which this package cannot name.
type Internals[Tool, Spec, Registry, RevertContext any] struct {
	// Spec returns the literal of a tool itself, not a copy. Its users only read
	// it. It is empty for the zero Tool.
	Spec func(Tool) *Spec
	// Compiled returns the compiled part of a tool that is not zero.
	Compiled func(Tool) Compiled
	// Admit decodes and validates an input of a tool that is not zero.
	Admit func(t Tool, input any, limits canon.Limits) (Input, error)
	// ForRevert finds the declaration that reverts a call, by name and undo
	// version. It prefers the declaration that made the call, then one of the
	// same version.
	ForRevert func(Registry, record.ToolRef) (Tool, bool)
	// Replacing returns a registry as the successor of an older one, whose tools
	// still revert the calls that they made.
	Replacing func(r, old Registry) Registry

	// CheckSetting says what is wrong with the value of one setting. The text
	// never repeats the value.
	CheckSetting func(t Tool, name string, value json.RawMessage) error
	// WithoutSettings returns the tool without settings. why says why the tool
	// has none, or why the runtime cannot offer it.
	WithoutSettings func(t Tool, why string) Tool

	// InSandbox declares that Execute only runs a program in the sandbox.
	InSandbox func(Spec) Spec
	// WithParts declares that the tool runs other tools inside its calls. Needs
	// then bounds what the parts may touch together, and the runtime authorizes
	// only the result of AccessFor before a call.
	WithParts func(s Spec, parts []Tool) Spec
	// WithToolContext returns the context with which a Revert opens handles.
	WithToolContext func(RevertContext, ctxperm.ToolContext) RevertContext
}

// Compiled is the compiled part of a tool. Its users only read it.
type Compiled struct {
	Output    *schema.Schema // nil: the output is not checked
	Bound     perm.Set       // needs with each parameter replaced by a wildcard
	Settings  []byte         // canonical settings; nil: the tool is not configured
	Sandboxed bool           // Execute only runs a program in the sandbox
}

// CheckOutput checks the structured output of a call against the tool's output
// schema, if it has one.
func (c Compiled) CheckOutput(output []byte) error {
	if c.Output == nil {
		return nil
	}
	v, err := canon.Parse(output, canon.DefaultLimits())
	if err == nil {
		err = c.Output.ValidateAs("the output", "field", v)
	}
	if err != nil {
		return fmt.Errorf("the output does not fit the tool's own schema: %w", err)
	}
	return nil
}

// Input is a valid input and all that it determines.
type Input struct {
	Canonical []byte
	Exact     []perm.ResourceAccess // accesses to authorize before the call; none: the call itself
	Bound     perm.Set              // upper bound of the accesses that the call may request while it runs
	Class     effect.Class
	Script    *perm.ScriptFacts      // nil: no script
	Sums      map[string]json.Number // amounts that the call adds to the counters of its session
}

// Maxima of an input or an output. A record holds it beside other data of the
// call, and has limits of its own.
const (
	MaxBytes = 48 << 20
	MaxDepth = 120
)

var installed any

// Install sets the internals. Package tool calls it once, when it is
// initialized.
func Install[T, S, R, C any](i Internals[T, S, R, C]) { installed = i }

// Of returns the internals. It panics for types other than those of package
// tool, so its users call it when they are initialized.
func Of[T, S, R, C any]() Internals[T, S, R, C] { return installed.(Internals[T, S, R, C]) } //nolint:errcheck // a wrong type is a mistake of this program, and panics

// Call returns the access that the call of a tool itself is.
func Call(name string) perm.ResourceAccess {
	return perm.ResourceAccess{Action: perm.Call, Resource: "tool://" + name}
}

// Decode parses an input as callers give it: JSON text, a Go value, or nil for
// an empty object. It also returns the canonical form, which the caller owns.
func Decode(input any, limits canon.Limits) (v canon.Value, text []byte, err error) {
	switch in := input.(type) {
	case nil:
		v, err = canon.Parse([]byte("{}"), limits)
	case json.RawMessage:
		v, err = canon.Parse(in, limits)
	case []byte:
		v, err = canon.Parse(in, limits)
	default:
		if v, text, err = canon.FromText(in); err != nil {
			break
		}
		if len(text) > limits.Bytes || canon.Deeper(text, limits.Depth) {
			v, err = canon.Parse(text, limits) // Parse reports the error
		}
	}
	if err != nil {
		return v, nil, fmt.Errorf("the input: %w", err)
	}
	if text == nil {
		text = v.Canonical()
	}
	return v, text, nil
}

// ReachesOut reports whether accesses within the bound can run a program with
// network access. No handle announces what the program sends.
func ReachesOut(bound perm.Set) bool {
	return slices.ContainsFunc(bound.Accesses(), func(a perm.ResourceAccess) bool {
		pattern, err := a.Pattern()
		return a.Action == perm.Connect && (err != nil || pattern.Kind() == perm.KindExec || pattern.Kind() == perm.KindFile)
	})
}
