package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/naming"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway/internal/wire"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// catalogTool is a tool of the runtime that reads an entry of a server: any
// resource, any prompt, or a completion. Its input names the entry, and so does
// its access.
type catalogTool struct {
	u           *upstream.Upstream
	verb        string
	description string
	input       string   // schema
	below       []string // the kind of entry, below the server
	entry       config.Entry
	identity    string // of the accepted server

	// about parses an input. It returns the segments of the resource, the key
	// of the definition that must be as accepted (empty: the server alone), and
	// the request.
	about func(in json.RawMessage) (segments []string, key string, w wire.Request, err error)
}

type resourceInput struct {
	URI string `json:"uri"`
}

type promptInput struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

type argumentInput struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// completionInput names either a prompt or a template.
type completionInput struct {
	Prompt   string            `json:"prompt,omitempty"`
	Resource string            `json:"resource,omitempty"`
	Argument argumentInput     `json:"argument"`
	Context  map[string]string `json:"context,omitempty"`
}

const (
	resourceSchema = `{"type":"object","properties":{"uri":{"type":"string","minLength":1,"maxLength":2048}},"required":["uri"],"additionalProperties":false}`
	promptSchema   = `{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":2048},` + argumentsSchema + `},"required":["name"],"additionalProperties":false}`
	completeSchema = `{"type":"object","properties":{"prompt":{"type":"string","maxLength":2048},"resource":{"type":"string","maxLength":2048},` +
		`"argument":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}},"required":["name","value"],"additionalProperties":false},` +
		`"context":{"type":"object","additionalProperties":{"type":"string"}}},"required":["argument"],"additionalProperties":false}`
	argumentsSchema = `"arguments":{"type":"object","additionalProperties":{"type":"string"}}`
)

// The segments below a server, beside its tools, in the resources that policies
// see.
const (
	belowResource = "resource"
	belowPrompt   = "prompt"
)

func (s serverCatalog) resourceTool() catalogTool {
	return catalogTool{
		u: s.u, verb: "read", description: "Read a resource of the server " + s.u.Server.Name + ".", input: resourceSchema, below: []string{belowResource}, entry: s.u.Server.Resources,
		about: func(in json.RawMessage) ([]string, string, wire.Request, error) {
			var of resourceInput
			err := json.Unmarshal(in, &of)
			return []string{belowResource, segment(of.URI)}, "", wire.ReadResource(of.URI), err
		},
	}
}

func (s serverCatalog) promptTool() catalogTool {
	return catalogTool{
		u: s.u, verb: "prompt", description: "Get a prompt of the server " + s.u.Server.Name + ".", input: promptSchema, below: []string{belowPrompt}, entry: s.u.Server.Prompts,
		about: func(in json.RawMessage) ([]string, string, wire.Request, error) {
			var of promptInput
			err := json.Unmarshal(in, &of)
			return []string{belowPrompt, segment(of.Name)}, definition.KeyPrompt + of.Name, wire.GetPrompt(of.Name, of.Arguments), err
		},
	}
}

func (s serverCatalog) completer() catalogTool {
	e := s.u.Server.Resources
	if s.u.Server.Prompts.Class == effect.Pivot {
		e = s.u.Server.Prompts
	}
	return catalogTool{
		u: s.u, verb: "complete", description: "Complete an argument of a prompt or a resource of the server " + s.u.Server.Name + ".", input: completeSchema,
		below: []string{belowResource, belowPrompt}, entry: e, about: completed,
	}
}

func completed(in json.RawMessage) ([]string, string, wire.Request, error) {
	var of completionInput
	if err := json.Unmarshal(in, &of); err != nil {
		return nil, "", wire.Request{}, err
	}
	p := sdk.CompleteParams{Argument: sdk.CompleteParamsArgument{Name: of.Argument.Name, Value: of.Argument.Value}}
	if of.Context != nil {
		p.Context = &sdk.CompleteContext{Arguments: of.Context}
	}
	switch {
	case (of.Prompt == "") == (of.Resource == ""):
		return nil, "", wire.Request{}, errors.New(`it names either a "prompt" or a "resource"`)
	case of.Prompt != "":
		p.Ref = &sdk.CompleteReference{Type: refPrompt, Name: of.Prompt}
		return []string{belowPrompt, segment(of.Prompt)}, definition.KeyPrompt + of.Prompt, wire.Complete(p), nil
	}
	p.Ref = &sdk.CompleteReference{Type: refResource, URI: of.Resource}
	return []string{belowResource, segment(of.Resource)}, "", wire.Complete(p), nil
}

// segment returns a URI or a name as one segment of a resource, which contains
// no slash.
func segment(name string) string { return strings.NewReplacer("%", "%25", "/", "%2F").Replace(name) }

func (r catalogTool) tool(identity, withheld string) (tool.Tool, error) {
	server := r.u.Server.Name
	r.identity = identity
	spec := tool.Spec{
		Name: naming.Reader(server, r.verb), Description: r.description, Tags: []string{"mcp", "untrusted"}, OutputContent: &provenance.Content{Trust: provenance.Untrusted},
		Input: json.RawMessage(r.input), AccessFor: r.access, EffectClass: cmp.Or(r.entry.Class, effect.Pure), Destination: r.entry.Destination, Execute: r.execute,
		Provenance: provenance.Source{Kind: provenance.MCP, Name: server, Version: string(canon.Sum("remit/mcp-reader/v1", []byte(identity)))},
		Hints:      tool.Hints{Timeout: r.entry.Timeout, Idempotent: true}, DisabledReason: withheld,
	}
	for _, below := range r.below {
		of, err := perm.KindMCP.Resource(server, below)
		if err != nil {
			return tool.Tool{}, err
		}
		spec.Needs = append(spec.Needs, perm.Access(perm.Read, of.String()+"/**"))
	}
	spec.Needs = append(spec.Needs, r.u.Requests.Needs()...)
	if r.u.Sandbox != nil {
		spec = sandboxSpec(r.u.Sandbox, spec)
	}
	if err := needs(&spec, r.entry.Needs, r.u.Shared.Roots); err != nil {
		return tool.Tool{}, err
	}
	return tool.FromSpec(spec)
}

// access returns the access of one read.
func (r catalogTool) access(in json.RawMessage) ([]perm.ResourceAccess, error) {
	segments, _, _, err := r.about(in)
	if err != nil {
		return nil, err
	}
	of, err := perm.KindMCP.Resource(r.u.Server.Name, segments...)
	if err != nil {
		return nil, err
	}
	return []perm.ResourceAccess{perm.Access(perm.Read, of.String())}, nil
}

// execute reads one entry.
func (r catalogTool) execute(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	_, key, w, err := r.about(in)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	s, turn, err := r.u.Begin(ctx, tc, r.entry.Timeout)
	if err != nil {
		return tool.Result{}, err
	}
	if identity := r.u.Declared().Identity; identity != r.identity {
		return tool.Result{}, tool.Blocked(fmt.Sprintf("the server calls itself %q now, and was %q when it was accepted", identity, r.identity))
	}
	if key != "" {
		if err := r.u.CheckAccepted(s, key); err != nil {
			return tool.Result{}, tool.Blocked(err.Error())
		}
	}
	get := func() (wire.Result, error) {
		a, err := r.u.Do(ctx, s, w, upstream.FactsOf(ctx, tc))
		upstream.LeaveProtocolError(ctx, err)
		a.Failed = false // a read has no isError
		return a, err
	}
	if turn != nil {
		return inSandbox(ctx, r.u, s, turn, sandboxRequest{pure: r.entry.Class != effect.Pivot, get: get, done: func(wire.Result) error { return nil }})
	}
	a, err := get()
	if err != nil {
		return tool.Result{}, err
	}
	rawresult.Leave(ctx, a.Object)
	return rawresult.Result(a.Object, a.Text, nil), nil
}
