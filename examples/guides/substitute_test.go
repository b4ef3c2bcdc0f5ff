package guides_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// substitutePrograms replaces the programs from npm that the tutorial on the gateway
// uses. It also lets the journal accept approvals.
func substitutePrograms(p *place) {
	program, err := os.Executable()
	require.NoError(p.t, err)
	files := map[string]string{
		"node":      fmt.Sprintf("%s=files exec '%s'\n", asServer, program),
		"inspector": fmt.Sprintf("%s=client exec '%s' \"$@\"\n", asServer, program),
		"npm":       "mkdir -p ~/servers/node_modules/.bin\ncp ~/bin/inspector ~/servers/node_modules/.bin/mcp-inspector\n",
	}
	bin := filepath.Join(p.home, "bin")
	require.NoError(p.t, os.Mkdir(bin, 0o700))
	for name, text := range files {
		require.NoError(p.t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o700))
	}
	p.env = append(p.env, "PATH="+strings.Join([]string{bin, binary(p.t), os.Getenv("PATH")}, string(filepath.ListSeparator)))
	unattended(p)
}

// unattended lets the journal of the current folder accept approvals without a
// terminal.
func unattended(p *place) { p.acceptApprovals(".") }

// acceptApprovals does the same for the journal of another workspace.
func (p *place) acceptApprovals(workspace string) {
	_, rules, found := strings.Cut(p.sh(0, "remit approval --workspace "+workspace), "kept in ")
	require.True(p.t, found)
	rules = strings.TrimSpace(rules)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(rules), 0o700))
	require.NoError(p.t, os.WriteFile(rules, []byte(`{"unattended":true}`), 0o600))
}

// serveFiles is a server with the tools of the file system server. Two of them
// work.
func serveFiles() error {
	server := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	type in struct {
		Path    string `json:"path"`
		Content string `json:"content,omitempty"`
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	run := map[string]sdk.ToolHandlerFor[in, any]{
		"read_text_file": func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
			data, err := os.ReadFile(a.Path)
			return text(string(data)), nil, err
		},
		"write_file": func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
			return text("written"), nil, os.WriteFile(a.Path, []byte(a.Content), 0o600)
		},
	}
	none := func(context.Context, *sdk.CallToolRequest, in) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("not in the tutorial")
	}
	writes := []string{"write_file", "edit_file", "create_directory", "move_file"}
	reads := []string{
		"read_file", "read_text_file", "read_media_file", "read_multiple_files", "list_directory",
		"list_directory_with_sizes", "directory_tree", "search_files", "get_file_info", "list_allowed_directories",
	}
	for i, name := range append(writes, reads...) {
		handler := run[name]
		if handler == nil {
			handler = none
		}
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: name, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: i >= len(writes)}}, handler)
	}
	return server.Run(context.Background(), &sdk.StdioTransport{})
}

// callOnce makes one call as the Inspector does, with the same flags, and
// prints the result.
func callOnce(args []string) error {
	flags := flag.NewFlagSet("inspector", flag.ContinueOnError)
	flags.Bool("cli", false, "")
	flags.String("method", "", "")
	config, server := flags.String("config", "", ""), flags.String("server", "", "")
	tool, input := flags.String("tool-name", "", ""), flags.String("tool-args-json", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	data, err := os.ReadFile(*config)
	if err != nil {
		return err
	}
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return err
	}
	cmd := exec.Command(settings.Servers[*server].Command, settings.Servers[*server].Args...)
	client := sdk.NewClient(&sdk.Implementation{Name: "inspector"}, nil)
	session, err := client.Connect(context.Background(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	r, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: *tool, Arguments: json.RawMessage(*input)})
	if err != nil {
		return err
	}
	out, err := json.MarshalIndent(map[string]any{"content": r.Content}, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(out))
	return session.Close()
}
