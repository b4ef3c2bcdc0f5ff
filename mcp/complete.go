package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostCompleted is the largest number of values in a response, by the protocol.
const mostCompleted = 100

// complete responds to completion/complete for the arguments of prompts and
// resources, with the values that the tool's schema lists.
func (s *Server) complete(ctx context.Context, req *sdk.CompleteRequest) (*wireResult, error) {
	st, err := s.clientSessionOf(ctx, req.Extra)
	if err != nil {
		return nil, err
	}
	name, ok := s.referred(req.Params.Ref)
	if !ok {
		return s.completeElsewhere(ctx, st, req)
	}
	t, shown := shownTool(ctx, st.session, name)
	if !shown {
		return s.completeElsewhere(ctx, st, req)
	}
	known, _ := argumentsOf(t)
	values := []string{}
	for _, v := range known[req.Params.Argument.Name].Enum {
		if text := fmt.Sprint(v); strings.HasPrefix(text, req.Params.Argument.Value) {
			values = append(values, text)
		}
	}
	o := newObject(req.ProtocolVersion())
	o.set("completion", sdk.CompletionResultDetails{
		Values: values[:min(len(values), mostCompleted)], Total: len(values), HasMore: len(values) > mostCompleted,
	})
	return o, nil
}

var errReference = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the reference names no prompt and no resource that is here"}

// referred returns the tool of a completion reference.
func (s *Server) referred(ref *sdk.CompleteReference) (tool string, ok bool) {
	switch {
	case ref == nil:
	case ref.Type == "ref/prompt":
		p, ok := s.prompt(ref.Name)
		return p.Tool, ok
	case ref.Type == "ref/resource":
		for _, r := range load(&s.offers.resources) {
			if r.URI == ref.URI {
				return r.Tool, true
			}
		}
		r, _, ok := s.resource(ref.URI)
		return r.Tool, ok
	}
	return "", false
}
