package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert/sqlite"
)

// The roles of this program in the gateway suite. Each role is its own process,
// as in practice, so that none pays for another one's garbage.
const (
	asUpstream = "gateway-upstream" // a server of tools, over its standard files
	asBare     = "gateway-bare"     // forwards calls
	asRemit    = "gateway-remit"    // remit's gateway; its state folder is the next argument
	asWriter   = "gateway-writer"   // the same, with a policy that allows writes
)

// letGather is the garbage collection target: the growth of the heap in
// percent.
const letGather = 400

// gatewayPart runs this program in one of the roles.
func gatewayPart(args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch args[0] {
	case asUpstream:
		return upstreamServer().Run(ctx, &sdk.StdioTransport{})
	case asBare:
		if len(args) > 1 {
			debug.SetGCPercent(letGather)
		}
		h, err := bareGateway(ctx)
		if err != nil {
			return err
		}
		return served(h, "")
	case asRemit, asWriter:
		debug.SetGCPercent(letGather) // as remit gateway does
		return remitGateway(ctx, args[1], args[0] == asWriter)
	}
	return fmt.Errorf("there is no part %q", args[0])
}

// readArgs is the input and output of the upstream's reading tool.
type readArgs struct {
	Path  string `json:"path" jsonschema:"what to look at"`
	Limit int    `json:"limit,omitempty" jsonschema:"how much of it"`
	Raw   bool   `json:"raw,omitempty"`
}

type readResult struct {
	Path    string   `json:"path"`
	Size    int      `json:"size"`
	Kind    string   `json:"kind"`
	Content []string `json:"content"`
}

// writeArgs is the input of the writing tool.
type writeArgs struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// upstreamServer is an SDK server of two functions that do almost nothing, so
// that the cost of a gateway shows most.
func upstreamServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shelf", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "look", Description: "Looks at something.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in readArgs) (*sdk.CallToolResult, readResult, error) {
			lines := []string{"The first line of what is there.", "A second one, with \"quotes\" and a \u2192.", "And a third."}
			return nil, readResult{Path: in.Path, Size: in.Limit, Kind: "file", Content: lines}, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "put", Description: "Keeps a text."},
		func(_ context.Context, _ *sdk.CallToolRequest, in writeArgs) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "kept " + in.Key}}}, nil, nil
		})
	return s
}

// bareGateway is a minimal gateway: it offers another server's tools and
// forwards each call and response.
func bareGateway(ctx context.Context) (http.Handler, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	up, err := client.Connect(ctx, &sdk.CommandTransport{Command: exec.Command(self, asUpstream)}, nil)
	if err != nil {
		return nil, err
	}
	tools, err := up.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	for _, t := range tools.Tools {
		name, mirrored := t.Name, *t
		mirrored.Name = "shelf__" + name
		s.AddTool(&mirrored, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return up.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: req.Params.Arguments})
		})
	}
	// As remit serves the newest revision.
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}), nil
}

// gatewayRules complement the default policy with the known effects of the
// upstream's tools.
const gatewayRules = `package remit

allow contains "what is on the shelf may be looked at, and put there" if {
	input.access.action == "call"
	input.access.resource.kind == "mcp"
	input.access.resource.server == "shelf"
}
`

const gatewayEntries = `{"look": {"effectClass": "pure"}, "put": {"effectClass": "pivot"}}`

// remitGateway is remit's, set up as remit gateway does: a policy, a journal on
// disk, one session.
func remitGateway(ctx context.Context, dir string, writes bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{
		"mcpServers": map[string]any{"shelf": map[string]any{"command": self, "args": []string{asUpstream}}},
		"remit":      map[string]any{"servers": map[string]any{"shelf": map[string]any{"tools": json.RawMessage(gatewayEntries)}}},
	})
	if err != nil {
		return err
	}
	c, err := config.Parse("gateway.json", text, os.LookupEnv)
	if err != nil {
		return err
	}
	g, err := gateway.Open(ctx, c, gateway.Options{State: filepath.Join(dir, "mcp"), SkipInputValidation: true})
	if err != nil {
		return err
	}
	g.Start()
	g.Await(ctx)
	j, err := sqlite.Open(ctx, filepath.Join(dir, "state"))
	if err != nil {
		return err
	}
	o := rego.Options{Modules: map[string]string{"shelf.rego": gatewayRules}, Timeout: time.Minute}
	if !writes { // the policy would ask
		o.Sources = []rego.Source{{FS: policies.Workspace(), Prefix: policies.Prefix, NoTests: true}}
	}
	e, err := rego.New(o)
	if err != nil {
		return err
	}
	rt, err := agent.New(agent.Tools(g.Tools()...), agent.Policy(e), agent.Journal(j), agent.SuspendForApproval())
	if err != nil {
		return err
	}
	s, err := rt.Session(ctx, perm.Principal{ID: "agent"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	if err != nil {
		return err
	}
	srv, err := mcp.New(rt, mcp.Options{Mirror: g})
	if err != nil {
		return err
	}
	h, err := srv.Handler(mcp.HTTPOptions{})
	if err != nil {
		return err
	}
	return errors.Join(served(h, s.Token()), rt.Close(), g.Close(), j.Close())
}

// gatewayAddress contains a gateway's address and a session token.
type gatewayAddress struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// served serves until standard input ends.
func served(h http.Handler, token string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(gatewayAddress{"http://" + l.Addr().String() + "/mcp", token}); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, srv.Close(), closed(<-failed))
}

func closed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
