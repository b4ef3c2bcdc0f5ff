package define

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// Implementation is the code of a tool, and what only its author can say of it. The fields
// mean what they mean in a tool.Spec; the file says the rest.
type Implementation struct {
	Execute       tool.Execute
	Access        func(in json.RawMessage) ([]perm.ResourceAccess, error)
	Script        func(in json.RawMessage) *perm.ScriptFacts
	ClassOf       func(in json.RawMessage) effect.Class
	Confinement   tool.Confinement
	Verify        verify.Verifier
	Revert        tool.Revert
	UndoVersion   string
	CheckSettings func(ctx context.Context, settings json.RawMessage) (warnings []string, err error)

	base tool.Tool // of FromTool; zero: the file says everything
}

// FromTool is the implementation that a tool has. What a file leaves out is as the tool has it;
// what it says can only be less: needs within those of the tool, an effect class and a
// destination that are not milder. An input must satisfy the schema of the file and that of
// the tool.
func FromTool(t tool.Tool) Implementation { return Implementation{base: t} }

// spec begins the literal of a tool.
func (i Implementation) spec() tool.Spec {
	if i.base.IsZero() {
		return tool.Spec{
			Execute: i.Execute, AccessFor: i.Access, ParseScript: i.Script, ClassOf: i.ClassOf, Confinement: i.Confinement,
			Verify: i.Verify, Revert: i.Revert, UndoVersion: i.UndoVersion, CheckSettings: i.CheckSettings,
		}
	}
	t, s := i.base, i.base.Spec()
	execute, own, verifier, script, class, back := s.Execute, s.AccessFor, s.Verify, s.ParseScript, s.ClassOf, s.Revert
	_ = own // t.Accesses asks it
	s.Execute = func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		full, err := t.NormalizeInput(in)
		if err != nil {
			return tool.Result{}, tool.NoEffect(err)
		}
		return execute(ctx, tc, full)
	}
	s.AccessFor = func(in json.RawMessage) ([]perm.ResourceAccess, error) { return t.Accesses(in) }
	if bound := s.Bound; bound != nil {
		s.Bound = func(in json.RawMessage) ([]perm.ResourceAccess, error) {
			full, err := t.NormalizeInput(in)
			if err != nil {
				return nil, err
			}
			return bound(full)
		}
	}
	if verifier != nil {
		s.Verify = func(ctx context.Context, subject verify.Subject) verify.Verdict {
			full, err := t.NormalizeInput(subject.Input)
			if err != nil {
				return verify.CannotTell("the input does not fit the tool that it was given to")
			}
			subject.Input = full
			return verifier(ctx, subject)
		}
	}
	if script != nil {
		s.ParseScript = func(in json.RawMessage) *perm.ScriptFacts {
			full, err := t.NormalizeInput(in)
			if err != nil {
				panic(err) // ScriptFacts then report an error to the policy
			}
			return script(full)
		}
	}
	if class != nil {
		s.ClassOf = func(in json.RawMessage) effect.Class {
			full, err := t.NormalizeInput(in)
			if err != nil {
				return "" // the tool's own
			}
			return class(full)
		}
	}
	if back != nil {
		s.Revert = func(ctx context.Context, rc tool.RevertContext) error {
			full, err := t.NormalizeInput(rc.Input)
			if err != nil {
				return err
			}
			rc.Input = full
			return back(ctx, rc)
		}
	}
	return s
}

// milder reports whether a file promises more than the tool that it describes.
func milder(file, base effect.Class) bool {
	order := effect.Classes()
	return slices.Index(order, file) < slices.Index(order, base.OrPivot())
}

func destinations() []tool.Destination {
	return []tool.Destination{tool.NoDestination, tool.Configured, tool.ThirdParty, tool.ModelChosen}
}

func missing(key string, have map[string]Implementation) string {
	var keys []string
	for k := range have {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if near := nearestOf(key, keys); near != "" {
		return fmt.Sprintf("there is no implementation %q; did you mean %q?", key, near)
	}
	return fmt.Sprintf("there is no implementation %q; there are %s", key, listed(keys))
}
