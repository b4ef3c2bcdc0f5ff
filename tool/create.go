package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// Option sets a field of a Spec that a constructor leaves open.
type Option func(*Spec)

// Pure declares that calls have no effect.
func Pure() Option { return Effect(effect.Pure) }

// Effect declares the effect class of calls.
func Effect(c effect.Class) Option { return func(s *Spec) { s.EffectClass = c } }

// Confined declares how the tool is held to its needs.
func Confined(c Confinement) Option { return func(s *Spec) { s.Confinement = c } }

// VerifyWith declares how to check whether the effect of a call is present.
func VerifyWith(v verify.Verifier) Option { return func(s *Spec) { s.Verify = v } }

// RevertWith declares how to revert a call that acts outside handles. The
// runtime finds the function again by the tool's name and undoVersion.
func RevertWith(undoVersion string, r Revert) Option {
	return func(s *Spec) { s.Revert, s.UndoVersion = r, undoVersion }
}

// Create makes a tool with text input and text output that touches nothing. Its
// effect class is undeclared unless an option sets it, so most tools use Pure.
func Create(name, description string, execute func(ctx context.Context, in string) (string, error), opts ...Option) (Tool, error) {
	if execute == nil {
		return FromSpec(Spec{Name: name})
	}
	run := func(ctx context.Context, _ ctxperm.ToolContext, in string) (string, error) { return execute(ctx, in) }
	return CreateWith(name, description, nil, run, opts...)
}

// CreateWith makes a tool with text input and text output that can touch what
// its needs allow, through its ToolContext.
func CreateWith(name, description string, needs []perm.ResourceAccess,
	execute func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error), opts ...Option,
) (Tool, error) {
	s := Spec{Name: name, Description: description, Needs: needs, Provenance: provenance.Source{Kind: provenance.Host}}
	if execute != nil {
		s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (Result, error) {
			var in string
			if err := json.Unmarshal(raw, &in); err != nil {
				return Result{}, NoEffect(err)
			}
			out, err := execute(ctx, tc, in)
			return Text(out), err
		}
	}
	return s.with(opts)
}

// CreateTyped makes a tool from Go types. The input schema is closed and comes
// from In. These struct tags apply: json names an argument, `jsonschema`
// describes it, `enum:"a,b"` lists the valid values, `default:"a"` sets the
// value of an omitted argument, `required:"true"` or "false" overrides
// omitempty, and `role:"content"` is an entry of Spec.Roles. The runtime decodes
// the input once, after validation. Out becomes
// Result.JSON, and its JSON is the text for the model: a string is in quotes.
func CreateTyped[In, Out any](name, description string, needs []perm.ResourceAccess,
	execute func(ctx context.Context, tc ctxperm.ToolContext, in In) (Out, error), opts ...Option,
) (Tool, error) {
	s, err := specOf[In, Out](name, description, needs)
	if err != nil {
		return Tool{}, err
	}
	if execute != nil {
		s.Execute = typed(execute)
	}
	return s.with(opts)
}

// specOf returns the declaration of a tool of Go types, without its Execute.
func specOf[In, Out any](name, description string, needs []perm.ResourceAccess) (s Spec, err error) {
	s = Spec{Name: name, Description: description, Needs: needs, Provenance: provenance.Source{Kind: provenance.Host}}
	if s.Input, err = schema.ForType[In](); err != nil {
		return s, fmt.Errorf("tool %q: input: %w", name, err)
	}
	if s.Roles, err = rolesOf(reflect.TypeFor[In]()); err != nil {
		return s, fmt.Errorf("tool %q: %w", name, err)
	}
	if s.Output, err = schema.ForType[Out](); err != nil {
		return s, fmt.Errorf("tool %q: output: %w", name, err)
	}
	return s, nil
}

func typed[In, Out any](execute func(context.Context, ctxperm.ToolContext, In) (Out, error)) Execute {
	return func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (Result, error) {
		var in In
		if err := canon.Decode(raw, &in); err != nil {
			return Result{}, NoEffect(err)
		}
		out, err := execute(ctx, tc, in)
		if err != nil {
			return Result{}, err
		}
		return resultOf(out)
	}
}

func resultOf(out any) (Result, error) {
	data, err := canon.Marshal(out)
	if err != nil {
		return Result{}, fmt.Errorf("output: %w", err)
	}
	return Result{JSON: data}, nil
}

func (s Spec) with(opts []Option) (Tool, error) {
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	return FromSpec(s)
}
