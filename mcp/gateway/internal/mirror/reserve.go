package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// reserve returns a hidden tool whose calls the runtime denies. A session is
// granted the needs of the tools that exist when it begins, often before a
// server responded. By this tool it gets what the configuration lets the
// server's tools need. The policy and the pins still decide each call.
func (m *Mirror) reserve(u *upstream.Upstream) (tool.Tool, error) {
	server := u.Server.Name
	spec := tool.Spec{
		Name: naming.Reader(server, "server"), Description: "The tools of the server " + server + ", whichever they are.", Tags: []string{"mcp", "untrusted"},
		Input: json.RawMessage(`{"type":"object"}`), EffectClass: effect.Pivot, Execute: uncalled, DisabledReason: "it stands for all tools of the server " + server,
		Provenance: provenance.Source{Kind: provenance.MCP, Name: server, Version: string(canon.Sum("remit/mcp-server/v1", []byte(server)))},
		Needs:      append(u.Requests.Needs(), perm.Access(perm.Call, "tool://"+naming.ToolPattern(server))),
	}
	of, err := perm.KindMCP.Resource(server)
	if err != nil {
		return tool.Tool{}, err
	}
	spec.Needs = append(spec.Needs, perm.Access(perm.Call, of.String()+"/**"))
	for _, below := range []string{belowResource, belowPrompt} {
		spec.Needs = append(spec.Needs, perm.Access(perm.Read, of.String()+"/"+below+"/**"))
	}
	if u.Sandbox != nil {
		spec = sandboxSpec(u.Sandbox, spec)
	}
	entries := []config.Entry{{}, u.Server.Resources, u.Server.Prompts}
	for _, name := range slices.Sorted(maps.Keys(u.Server.Tools)) {
		entries = append(entries, u.Server.Tools[name])
	}
	for _, e := range entries {
		_ = m.tool(u, definition.Definition{}, "", e).needs(&spec) // leaves out tools whose entries do not fit
	}
	spec.AccessFor, spec.Revert, spec.Verify = nil, nil, nil
	return tool.FromSpec(spec)
}

func uncalled(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
	return tool.Result{}, tool.NoEffect(errors.New("it stands for all tools of a server, and is none"))
}
