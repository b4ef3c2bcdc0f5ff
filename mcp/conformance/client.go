package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// The suite starts this program with the URL of a server that it watches, once for each scenario. A client comes through
// remit's own server and the gateway to it.

const driving = "drive"

func asClient(args []string) (url string, ok bool) {
	if len(args) != 2 || args[0] != driving {
		return "", false
	}
	return args[1], true
}

func startClient(context.Context, string) (where []string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	return []string{"--command", self + " " + driving}, func() error { return nil }, nil
}

// driver is the client, and what it comes through.
type driver struct {
	client *sdk.ClientSession
	close  func()
	suite  struct { // by the suite
		ToolCalls []struct {
			Name      string
			Arguments map[string]any
		}
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
}

// drive does what a scenario wants of a client.
func drive(ctx context.Context, url string, env func(string) string) (err error) {
	d := &driver{}
	if text := env("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &d.suite); err != nil {
			return err
		}
	}
	if err := d.connect(ctx, url); err != nil {
		return err
	}
	defer d.close()
	name := env("MCP_CONFORMANCE_SCENARIO")
	switch name {
	case "tools_call":
		return d.call(ctx, "add_numbers", map[string]any{"a": 5, "b": 3})
	case "elicitation-sep1034-client-defaults":
		return d.call(ctx, "test_client_elicitation_defaults", nil)
	case "sse-retry":
		return d.call(ctx, "test_reconnection", nil)
	case "json-schema-2020-12-preservation":
		return d.echo(ctx)
	case "http-standard-headers":
		return d.oneOfEach(ctx)
	case "sep-2322-client-request-state":
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			_ = d.call(ctx, name, nil) // some are to be refused
		}
	case "http-custom-headers":
		for _, c := range d.suite.ToolCalls {
			_ = d.call(ctx, c.Name, c.Arguments) // as above
		}
	case "http-invalid-tool-headers":
		list, err := d.client.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		for _, t := range list.Tools {
			_ = d.call(ctx, strings.TrimPrefix(t.Name, prefix), map[string]any{"region": "us-west1"})
		}
	default:
		if strings.HasPrefix(name, "auth/") {
			return d.call(ctx, "test-tool", nil)
		}
		_, err := d.client.ListTools(ctx, nil)
		return err
	}
	return nil
}

// connect brings a client of remit's server to the other one, under a policy that allows all.
func (d *driver) connect(ctx context.Context, url string) error {
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"up": map[string]any{"type": "http", "url": url}}})
	if err != nil {
		return err
	}
	c, err := config.Parse("suite", text, os.LookupEnv)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	g, err := gateway.Open(ctx, c, gateway.Options{Name: "remit-conformance", Version: "1", SkipInputValidation: true, Log: log, Authorize: d.authorizer(log)})
	if err != nil {
		return err
	}
	g.Start()
	g.Await(ctx)
	all := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "it is the suite"}}}), nil
	})
	rt, err := agent.New(agent.Tools(g.Tools()...), agent.Policy(all), agent.Log(log))
	if err != nil {
		return errors.Join(err, g.Close())
	}
	d.close = func() {
		_ = rt.Close()
		_ = g.Close()
	}
	s, err := rt.Session(ctx, perm.Principal{ID: "suite"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	if err != nil {
		return err
	}
	srv, err := mcp.New(rt, mcp.Options{Mirror: g, NoTransactions: true, Log: log})
	if err != nil {
		return err
	}
	here, there := sdk.NewInMemoryTransports()
	go func() { _ = srv.Run(ctx, there, s) }()
	d.client, err = sdk.NewClient(&sdk.Implementation{Name: "suite", Version: "1"}, &sdk.ClientOptions{
		Capabilities:       &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		ElicitationHandler: confirm,
	}).Connect(ctx, here, nil)
	return err
}

// confirm says yes to what is asked for, and leaves the rest as the server has it.
func confirm(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	content := map[string]any{}
	if asked, ok := req.Params.RequestedSchema.(map[string]any); ok {
		if properties, ok := asked["properties"].(map[string]any); ok && properties["confirmed"] != nil {
			content["confirmed"] = true
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

func (d *driver) call(ctx context.Context, name string, args map[string]any) error {
	if args == nil {
		args = tool.Args{}
	}
	r, err := d.client.CallTool(ctx, &sdk.CallToolParams{Name: prefix + name, Arguments: args})
	if err == nil && r.IsError {
		text, _ := json.Marshal(r.Content)
		err = errors.New(string(text))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// echo sends the schema of a tool back, as it came.
func (d *driver) echo(ctx context.Context) error {
	list, err := d.client.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	for _, t := range list.Tools {
		if t.Name == prefix+"json_schema_2020_12_tool" {
			return d.call(ctx, "json_schema_echo", map[string]any{"schema": t.InputSchema})
		}
	}
	return errors.New("the tool whose schema is to be sent back is not there")
}

// oneOfEach uses the first tool, the first resource and the first prompt.
func (d *driver) oneOfEach(ctx context.Context) error {
	tools, err := d.client.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	if len(tools.Tools) > 0 {
		_ = d.call(ctx, strings.TrimPrefix(tools.Tools[0].Name, prefix), nil)
	}
	if all, err := d.client.ListResources(ctx, nil); err == nil && len(all.Resources) > 0 {
		_, _ = d.client.ReadResource(ctx, &sdk.ReadResourceParams{URI: all.Resources[0].URI})
	}
	if all, err := d.client.ListPrompts(ctx, nil); err == nil && len(all.Prompts) > 0 {
		_, _ = d.client.GetPrompt(ctx, &sdk.GetPromptParams{Name: all.Prompts[0].Name})
	}
	return nil
}
