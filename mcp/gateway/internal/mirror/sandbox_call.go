package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/mcp/gateway/internal/program"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

// sandboxSpec adds what is known of each tool in the sandbox: it reaches its
// roots and, unless it has the network, nothing else.
func sandboxSpec(b *program.Sandbox, s tool.Spec) tool.Spec {
	for _, name := range b.Roots() {
		for _, a := range []perm.Action{perm.Read, perm.List, perm.Write, perm.Delete} {
			if a.Changes() && s.EffectClass == effect.Pure {
				continue
			}
			s.Needs = append(s.Needs, perm.Access(a, "file://"+name+"/**"))
		}
	}
	switch {
	case b.Network && s.EffectClass == effect.Reversible: // the entry says so
		s.Coverage = effect.Declared
	case b.Network:
		s.Coverage, s.Observed = effect.Observed, b.Roots()
	default:
		s.EffectClass, s.Destination = cmp.Or(s.EffectClass, effect.Reversible), cmp.Or(s.Destination, tool.NoDestination)
		if s.Verify == nil && s.EffectClass == effect.Reversible {
			s.Verify = verify.Changes
		}
	}
	return internals.InSandbox(s)
}

// callInSandbox runs one call of a tool of a server in the sandbox.
func (m mirroredTool) callInSandbox(ctx context.Context, tc ctxperm.ToolContext, s *upstream.Conn, turn *process.ServerCall, in json.RawMessage) (tool.Result, error) {
	var parts map[string]canon.Value
	return inSandbox(ctx, m.u, s, turn, sandboxRequest{pure: m.entry.Class == effect.Pure, get: func() (a wire.Result, err error) {
		if parts, err = m.undo.Before(ctx, tc, in); err != nil {
			return a, err
		}
		a, err = m.u.Call(ctx, s, m.def.Name, in, upstream.FactsOf(ctx, tc))
		upstream.LeaveProtocolError(ctx, err)
		return a, err
	}, failed: m.responseError, done: func(a wire.Result) error {
		if m.entry.Compensate == nil {
			return nil
		}
		return m.undo.NoteCompensation(ctx, tc, parts, a)
	}})
}

// sandboxRequest is a request to a server in the sandbox.
type sandboxRequest struct {
	pure   bool // declared read-only
	get    func() (wire.Result, error)
	failed func(wire.Result) error // converts a response with isError to an error
	done   func(wire.Result) error // runs when the writes are applied
}

// inSandbox runs a request with exclusive use of a server in the sandbox. The
// runtime applies what the server wrote, unless the call fails.
func inSandbox(ctx context.Context, u *upstream.Upstream, s *upstream.Conn, turn *process.ServerCall, e sandboxRequest) (tool.Result, error) {
	turn.SetBusy(true)
	a, err := e.get()
	if err != nil {
		if ctx.Err() != nil { // the server can still process it
			s.Drain()
		} else {
			turn.SetBusy(false)
		}
		return tool.Result{}, err
	}
	turn.SetBusy(false)
	rawresult.Leave(ctx, a.Object)
	if a.Failed {
		return tool.Result{}, e.failed(a)
	}
	wrote, leftOut, err := turn.End(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if wrote > 0 && e.pure {
		return tool.Result{}, fmt.Errorf("the tool is said to only read, and changed %d files; none of it is applied", wrote)
	}
	for _, what := range leftOut {
		u.Shared.Log.Warn("something that a server left is not applied", "server", u.Server.Name, "what", what)
	}
	if err := e.done(a); err != nil {
		return tool.Result{}, err
	}
	return rawresult.Result(a.Object, a.Text, nil), nil
}
