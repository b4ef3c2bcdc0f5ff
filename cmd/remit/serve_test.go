//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

var revisions = []string{"2026-07-28", "2025-11-25"}

// TestServeStdio: a client starts the command, calls, and what it did is taken back, by the client and by remit revert.
func TestServeStdio(t *testing.T) {
	remit := build(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			workspace, state := testPlace(t)
			cmd := exec.Command(remit, "serve", "--workspace", workspace, "--state", state)
			cmd.Stderr = os.Stderr
			cs := joinAs(t, revision, &sdk.CommandTransport{Command: cmd})
			require.Equal(t, "remit", cs.InitializeResult().ServerInfo.Name)
			kept, gone := callFile(t, cs, "kept.txt"), callFile(t, cs, "gone.txt")
			_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "txn_revert", Arguments: map[string]any{"call": gone}})
			require.NoError(t, err)
			require.NoFileExists(t, filepath.Join(workspace, "gone.txt"))
			require.NoError(t, cs.Close())

			out, err := exec.Command(remit, "revert", "--state", state, kept).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NoFileExists(t, filepath.Join(workspace, "kept.txt"))
		})
	}
}

// TestServeHTTP: the token of the first start is good after a restart, also when the server was killed; another token is
// another session; and SIGTERM ends it well.
func TestServeHTTP(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	start := func() (*exec.Cmd, string, string) {
		cmd := exec.Command(remit, "serve", "--workspace", workspace, "--state", state, "--http", "127.0.0.1:0", "--json")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		require.NoError(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err != nil { // its standard error is all here once it has ended
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		require.NoError(t, err, "%s", &errs)
		var where listening
		require.NoError(t, json.Unmarshal(line, &where))
		info, err := os.Stat(where.TokenFile)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		token, err := os.ReadFile(where.TokenFile)
		require.NoError(t, err)
		require.NotContains(t, string(line), strings.TrimSpace(string(token)))
		return cmd, where.URL, strings.TrimSpace(string(token))
	}
	first, url, token := start()
	cs := joinAs(t, revisions[0], overHTTP(url, token))
	done := callFile(t, cs, "a.txt")
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	_ = cs.Close()

	second, url, again := start()
	require.Equal(t, token, again)
	for _, revision := range revisions {
		cs := joinAs(t, revision, overHTTP(url, token))
		_, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "txn_revert", Arguments: map[string]any{"call": done}})
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(workspace, "a.txt"), "what was done before the kill")
		require.NoError(t, cs.Close())
	}

	made, err := exec.Command(remit, "token", "--workspace", workspace, "--state", state, "--as", "painter").Output()
	require.NoError(t, err)
	other := strings.TrimSpace(string(made))
	require.NotEqual(t, token, other)
	cs = joinAs(t, revisions[0], overHTTP(url, other))
	mine := callFile(t, cs, "b.txt")
	require.NoError(t, cs.Close())
	cs = joinAs(t, revisions[0], overHTTP(url, token))
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "txn_revert", Arguments: map[string]any{"call": mine}})
	require.NoError(t, err)
	require.True(t, r.IsError, "it is another session's")
	require.FileExists(t, filepath.Join(workspace, "b.txt"))
	require.NoError(t, cs.Close())

	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.Wait())
}

func joinAs(t *testing.T, revision string, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	cs, err := client.Connect(context.WithoutCancel(t.Context()), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(t, err)
	require.Equal(t, revision, cs.InitializeResult().ProtocolVersion)
	return cs
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(url, token string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1}
}

// callFile writes a file, and returns the id of the call.
func callFile(t *testing.T, cs *sdk.ClientSession, name string) string {
	t.Helper()
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "file_write", Arguments: map[string]any{"path": name, "content": "hi"}})
	require.NoError(t, err)
	require.False(t, r.IsError)
	id, _ := r.Meta["remit.dev/call"].(string)
	return id
}
