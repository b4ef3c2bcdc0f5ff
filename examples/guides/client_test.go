package guides_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// asServer in the environment makes this test binary an MCP server, a client that
// makes one call, or a coding agent.
const asServer = "REMIT_GUIDES_SERVER"

// actAs is the main function of this test binary as a server or a client.
func actAs(what string) {
	var err error
	switch what {
	case "files":
		err = serveFiles()
	case "claude":
		err = playClaude(os.Args[1:])
	case "client":
		_ = os.Unsetenv(asServer) // its server is another program
		err = callOnce(os.Args[1:])
	default:
		serveNotes()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveNotes is a server with one tool, which writes a note beside it and
// reports that.
func serveNotes() {
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	yes := true
	sdk.AddTool(server, &sdk.Tool{Name: "note", Description: "Writes a note.", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}},
		func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
			err := os.WriteFile("note.txt", []byte(a.Text), 0o600)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "written"}}}, nil, err
		})
	_ = server.Run(context.Background(), &sdk.StdioTransport{})
}

// client writes the settings of a client with that server, and returns them.
func (p *place) client(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{
		"notes": map[string]any{"command": program, "args": []string{}, "env": map[string]string{asServer: "1"}},
	}}, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.home, ".claude.json"), text, 0o600))
	return string(text)
}

func (p *place) settings(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.home, ".claude.json"))
	require.NoError(t, err)
	return string(text)
}

// ask starts the server of the client's settings, and calls a tool of it. It
// approves as a person.
func (p *place) ask(t *testing.T, name string, arguments map[string]any) {
	t.Helper()
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal([]byte(p.settings(t)), &settings))
	require.Len(t, settings.Servers, 1)
	for _, server := range settings.Servers {
		cmd := exec.Command(server.Command, server.Args...)
		cmd.Dir, cmd.Env = p.dir, p.env
		asked := func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		}
		client := sdk.NewClient(&sdk.Implementation{Name: "claude-code"}, &sdk.ClientOptions{ElicitationHandler: asked})
		session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		require.NoError(t, err)
		tools, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		for _, one := range tools.Tools {
			if one.Name == "notes__"+name || one.Name == name {
				r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: one.Name, Arguments: arguments})
				require.NoError(t, err)
				text, err := json.Marshal(r)
				require.NoError(t, err)
				require.False(t, r.IsError, "%s", text)
				require.NoError(t, session.Close())
				return
			}
		}
		require.Fail(t, "the tool is not offered", "%v", tools.Tools)
	}
}
