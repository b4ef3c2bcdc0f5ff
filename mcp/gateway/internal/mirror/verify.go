package mirror

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/mcp/gateway/internal/undo"
	"github.com/remit-dev/remit/verify"
)

// verify checks by a tool of the server whether the call worked.
func (m mirroredTool) verify(ctx context.Context, s verify.Subject) verify.Verdict {
	c := m.entry.Verify
	parts := map[string]canon.Value{}
	for name, text := range map[string]json.RawMessage{"input": s.Input, "output": s.Output, "before": s.Notes[undo.NoteBefore]} {
		if v, err := canon.Parse(text, canon.DefaultLimits()); err == nil && v.Kind() != canon.Null {
			parts[name] = v
		}
	}
	args, err := binding.FillTemplate(c.Args, parts)
	if err != nil {
		return verify.CannotTell("what to ask is not known: " + err.Error())
	}
	a, err := m.u.CallReadOnly(ctx, c.Tool, args)
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	answer, err := canon.Parse(a.Object, canon.DefaultLimits())
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	parts["answer"] = answer
	found, err := binding.LookUp("/answer"+c.Applied, parts)
	switch {
	case errors.Is(err, binding.ErrMissing):
		return verify.Absent("the server has nothing at " + c.Applied)
	case err != nil:
		return verify.CannotTell(err.Error())
	case len(c.Equals) == 0:
		return verify.Applied()
	}
	want, err := binding.FillTemplate(c.Equals, parts)
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	got, err := canon.Marshal(found)
	if err != nil || string(got) != string(want) {
		return verify.Absent("the server has something else at " + c.Applied)
	}
	return verify.Applied()
}
