package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/raw"
	"github.com/remit-dev/remit/tool"
)

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	in, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	c := call{s: s, in: in, revision: req.ProtocolVersion()}
	if c.tool, err = s.called(req.Params.Name); err != nil {
		return nil, err
	}
	input, why := arguments(c.tool, req.Params.Arguments)
	if why != nil {
		return c.refused(why), nil
	}
	return c.alone(ctx, input)
}

// call is one tools/call.
type call struct {
	s        *Server
	in       *agent.Session
	tool     tool.Tool
	revision string
}

// called finds the tool that a client asks for.
func (s *Server) called(name string) (tool.Tool, error) {
	asked, known := name, false
	if s.opts.Mirror != nil {
		if other, ok := s.opts.Mirror.Called(name); ok {
			asked, known = other, true
		}
	}
	t, ok := s.rt.Tools().Get(asked)
	if ok && !known && s.opts.Mirror != nil {
		_, mirrored := s.opts.Mirror.Listed(t)
		ok = !mirrored // it has one name here, and that is another one
	}
	if !ok {
		return tool.Tool{}, unknownTool(name)
	}
	return t, nil
}

func unknownTool(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", name)}
}

// arguments are the input of a tool, out of the arguments that carry it.
func arguments(t tool.Tool, args json.RawMessage) (json.RawMessage, error) {
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage(`{}`)
	}
	_, wrapped := inputSchema(t)
	if !wrapped {
		return args, nil
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, errors.New("the arguments are no object")
	}
	input, ok := in[member]
	if !ok || len(in) != 1 {
		return nil, fmt.Errorf("the arguments are one object with the one member %q", member)
	}
	return input, nil
}

// alone runs the call in a transaction of its own.
func (c call) alone(ctx context.Context, input json.RawMessage) (sdk.Result, error) {
	tx, err := c.in.Begin(ctx)
	if err != nil {
		return c.refused(err), nil
	}
	ctx, slot := raw.With(ctx)
	out, err := tx.Invoke(ctx, c.tool.Name(), input)
	ending := context.WithoutCancel(ctx)
	switch {
	case out.Status == tool.StatusPending: // open, until somebody has answered
	case err == nil:
		if err := tx.Commit(ending); err != nil {
			return c.uncommitted(out, err), nil
		}
	default:
		if _, err := tx.Revert(ending); err != nil {
			c.s.opts.Log.Warn("a call that did not end well was not all taken back", "txn", tx.ID(), "error", err)
		}
	}
	return c.result(out, slot), nil
}
