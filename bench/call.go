package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

// calls compares a permitted call of a pure tool through the whole pipeline,
// with a journal in memory, with a call of the same tool in mcp-go, in process
// and with validated input. mcp-go decides no policy and records nothing.
func calls(c clock) ([]promiseRow, error) {
	fresh, err := remitCall(-1)
	if err != nil {
		return nil, err
	}
	memoised, err := remitCall(0)
	if err != nil {
		return nil, err
	}
	peer, err := mcpCall()
	if err != nil {
		return nil, err
	}
	t, err := interleave(
		c,
		subject{name: "fresh", op: fresh, cpu: true}, subject{name: "memoised", op: memoised, cpu: true}, subject{name: "mcp-go", op: peer, cpu: true},
	)
	if err != nil {
		return nil, err
	}
	return []promiseRow{
		most("call", "whole pure call to mcp-go's, fresh", t, "fresh", "mcp-go", 0.3),
		most("call", "whole pure call to mcp-go's, memoised", t, "memoised", "mcp-go", 0.15),
	}, nil
}

// schemaOfEight has eight properties, two of them with patterns, and is closed.
const schemaOfEight = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1, "maxLength": 4096},
		"id": {"type": "string", "pattern": "^[a-z]{2}-[0-9]+$"},
		"kind": {"type": "string", "enum": ["file", "folder", "link"]},
		"offset": {"type": "integer", "minimum": 0},
		"limit": {"type": "integer", "minimum": 1, "maximum": 1000},
		"raw": {"type": "boolean"},
		"lang": {"type": "string", "pattern": "^[a-z]{2}$"},
		"note": {"type": "string"}
	},
	"required": ["path", "id", "limit"],
	"additionalProperties": false
}`

func arguments(turn int) map[string]any {
	return map[string]any{
		"path": "src/main.go", "id": fmt.Sprint("ab-", turn), "kind": "file", "offset": turn, "limit": 100, "raw": true,
		"lang": "en", "note": "looks at one file",
	}
}

func remitCall(memo int) (func(int) error, error) {
	e, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": pureRules(100)}, CacheSize: memo, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	look, err := tool.FromSpec(tool.Spec{
		Name: "file_look", Description: "Looks at a file.", Input: json.RawMessage(schemaOfEight), EffectClass: "pure",
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: "ok"}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	rt, err := agent.New(agent.Tools(look), agent.Policy(e))
	if err != nil {
		return nil, err
	}
	begin, err := begun(rt)
	if err != nil {
		return nil, err
	}
	turn := 0
	return func(int) error {
		// A journal in memory grows: start a new one before its size affects
		// the measurement.
		if turn++; turn%20000 == 0 {
			if rt, err = agent.New(agent.Tools(look), agent.Policy(e)); err != nil {
				return err
			}
			if begin, err = begun(rt); err != nil {
				return err
			}
		}
		out, err := begin.Invoke(context.Background(), "file_look", tool.Args(arguments(turn)))
		if err == nil && out.Result.Text != "ok" {
			err = errAnswer
		}
		return err
	}, nil
}

// begun opens a session and begins a transaction in it.
func begun(rt *agent.Runtime) (*agent.Txn, error) {
	s, err := rt.Session(context.Background(), perm.Principal{ID: "ada", Kind: "agent", Roles: []string{"editor"}})
	if err != nil {
		return nil, err
	}
	return s.Begin(context.Background())
}

func pureRules(n int) string {
	text := "package remit\n\nallow contains \"pure calls\" if {\n\tinput.tool.name == \"file_look\"\n\tinput.call.effect_class == \"pure\"\n}\n"
	for i := range n - 1 {
		text += fmt.Sprintf("\ndeny contains \"rule %d\" if {\n\tinput.tool.name == \"tool_%d\"\n\t\"editor\" in input.principal.roles\n}\n", i, i)
	}
	return text
}

func mcpCall() (func(int) error, error) {
	s := server.NewMCPServer("bench", "1.0.0", server.WithInputSchemaValidation())
	look := mcp.NewToolWithRawSchema("file_look", "Looks at a file.", json.RawMessage(schemaOfEight))
	s.AddTool(look, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("ok"), nil
	})
	c, err := client.NewInProcessClient(s)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1.0.0"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	turn := 0
	return func(int) error {
		turn++
		req := mcp.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = "file_look", arguments(turn)
		out, err := c.CallTool(ctx, req)
		if err == nil && (out.IsError || len(out.Content) != 1) {
			err = errAnswer
		}
		return err
	}, nil
}
