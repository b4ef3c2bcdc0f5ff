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
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/serve"
)

var revisions = []string{"2026-07-28", "2025-11-25"}

// TestServeStdio: a client starts the command, calls, and what it did is reverted, by the client and by remit revert.
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

// startHTTP starts a server over HTTP, and returns where it listens and the token of its session.
func startHTTP(t *testing.T, remit string, args ...string) (cmd *exec.Cmd, url, token string) {
	cmd = exec.Command(remit, append([]string{"serve", "--http", "127.0.0.1:0", "--json"}, args...)...)
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
	var where serve.Listening
	require.NoError(t, json.Unmarshal(line, &where))
	info, err := os.Stat(where.TokenFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	data, err := os.ReadFile(where.TokenFile)
	require.NoError(t, err)
	token = strings.TrimSpace(string(data))
	require.NotContains(t, string(line), token)
	return cmd, where.URL, token
}

// TestServeHTTP: the token of the first start is good after a restart, also when the server was killed; another token is
// another session; and SIGTERM ends it well.
func TestServeHTTP(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	start := func() (*exec.Cmd, string, string) {
		return startHTTP(t, remit, "--workspace", workspace, "--state", state)
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

	made, err := exec.Command(remit, "token", "--workspace", workspace, "--state", state, "--principal", "painter").Output()
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

	for span, good := range map[string]bool{"": true, "0": true, "1ns": false} {
		args := []string{"token", "--workspace", workspace, "--state", state, "--principal", "painter", "--json"}
		if span != "" {
			args = append(args, "--for", span)
		}
		out, err := exec.Command(remit, args...).Output()
		require.NoError(t, err)
		var made serve.TokenOutput
		require.NoError(t, json.Unmarshal(out, &made))
		require.Equal(t, span == "0", made.Expires.IsZero())
		require.Equal(t, span == "", made.Expires.After(time.Now().Add(29*24*time.Hour)))
		look := func() *http.Response {
			req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
			require.NoError(t, err)
			res, err := bearer(made.Token).RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res
		}
		require.Equal(t, good, look().StatusCode != http.StatusUnauthorized, span)
		if good { // until another process revokes it
			require.NoError(t, exec.Command(remit, "grants", "revoke", made.Session, "--workspace", workspace, "--state", state).Run())
			res := look()
			require.Equal(t, http.StatusUnauthorized, res.StatusCode)
			require.Contains(t, res.Header.Get("WWW-Authenticate"), `error="invalid_token"`)
		}
	}
	require.Error(t, exec.Command(remit, "token", "--workspace", workspace, "--state", state, "--principal", "painter", "--for", "-1s").Run())

	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.Wait())
}

// TestServeClaimTimeout: the flag holds for each client of a server, also over HTTP.
func TestServeClaimTimeout(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	server, url, token := startHTTP(t, remit, "--workspace", workspace, "--state", state, "--claim-timeout", "30ms")
	cs := joinAs(t, revisions[0], overHTTP(url, token))
	begun, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "txn_begin", Arguments: map[string]any{}})
	require.NoError(t, err)
	open, _ := begun.StructuredContent.(map[string]any)
	_, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "file_write", Arguments: map[string]any{"path": "a.txt", "content": "1"}, Meta: sdk.Meta{"remit.dev/txn": open["txn"]}})
	require.NoError(t, err)
	late, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "file_write", Arguments: map[string]any{"path": "a.txt", "content": "2"}})
	require.NoError(t, err)
	said, err := json.Marshal(late)
	require.NoError(t, err)
	require.Contains(t, string(said), "which did not happen within 30ms")
	require.NoError(t, cs.Close())
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait())
}

// TestTokenMaxCalls: a token that is made for two calls starts two, also after a restart of the server.
func TestTokenMaxCalls(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	place := []string{"--workspace", workspace, "--state", state}
	token, err := exec.Command(remit, append([]string{"token", "--principal", "painter", "--max-calls", "2"}, place...)...).Output()
	require.NoError(t, err)
	for n, name := range []string{"a.txt", "b.txt", "c.txt"} {
		server, url, _ := startHTTP(t, remit, place...)
		cs := joinAs(t, revisions[0], overHTTP(url, strings.TrimSpace(string(token))))
		r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "file_write", Arguments: map[string]any{"path": name, "content": "hi"}})
		require.NoError(t, err)
		said, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, n == 2, r.IsError, "%s", said)
		_ = cs.Close()
		require.NoError(t, server.Process.Signal(syscall.SIGTERM))
		require.NoError(t, server.Wait())
	}
	out, err := exec.Command(remit, append([]string{"token", "--principal", "painter", "--max-calls", "-1"}, place...)...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "--max-calls")
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

// TestServeRevertOfOwnFiles: an agent that has tightened the policy, as a person let it, does not revert that by itself.
func TestServeRevertOfOwnFiles(t *testing.T) {
	remit := build(t)
	workspace, state := testPlace(t)
	own, other := filepath.Join(workspace, "p.rego"), filepath.Join(t.TempDir(), "all.rego")
	for _, file := range []string{own, other} {
		require.NoError(t, os.WriteFile(file, []byte("package remit\n\nallow contains \"all\"\n"), 0o600))
	}
	first, url, token := startHTTP(t, remit, "--workspace", workspace, "--state", state, "--policy", other)
	cs := joinAs(t, revisions[0], overHTTP(url, token))
	tighter := "package remit\n\nallow contains \"all\"\n\ndeny contains \"secrets\" if input.access.resource.name == \".env\"\n"
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "file_write", Arguments: map[string]any{"path": "p.rego", "content": tighter}})
	require.NoError(t, err)
	require.False(t, r.IsError)
	call, _ := r.Meta["remit.dev/call"].(string)
	require.NoError(t, cs.Close())
	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	_ = first.Wait()

	second, url, token := startHTTP(t, remit, "--workspace", workspace, "--state", state, "--policy", own)
	cs = joinAs(t, revisions[0], overHTTP(url, token))
	r, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "txn_revert", Arguments: map[string]any{"call": call}})
	require.NoError(t, err)
	require.True(t, r.IsError)
	said, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(said), "remit reads its policy or the configuration of its gateway from workspace/p.rego")
	require.Contains(t, string(said), "a person can revert it: remit revert "+call)
	now, err := os.ReadFile(own)
	require.NoError(t, err)
	require.Equal(t, tighter, string(now))
	require.NoError(t, cs.Close())

	out, err := exec.Command(remit, "revert", "--state", state, call).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	_ = second.Wait()
}

// TestServeRetention: a server that is told what to keep drops older records beside its traffic. The calls go on until it has: each is
// later than those before, and that is what makes them old.
func TestServeRetention(t *testing.T) {
	remit := build(t)
	config := filepath.Join(t.TempDir(), "gateway.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"mcpServers": {}}`), 0o600))
	for name, command := range map[string][]string{"serve": {"serve"}, "gateway": {"gateway", "--own-tools", "--config", config}} {
		t.Run(name, func(t *testing.T) {
			workspace, state := testPlace(t)
			cs := joinAs(t, revisions[0], &sdk.CommandTransport{Command: exec.Command(remit, append(command, "--workspace", workspace, "--state", state, "--keep", "1ms", "--keep-last", "1")...)})
			defer func() { require.NoError(t, cs.Close()) }()
			first := callFile(t, cs, "first.txt")
			for begun := time.Now(); ; {
				last := callFile(t, cs, "later.txt")
				out, err := exec.Command(remit, "show", "--state", state, first).CombinedOutput()
				require.NoError(t, err, "%s", out)
				if strings.Contains(string(out), "dropped by age") {
					break
				}
				require.Less(t, time.Since(begun), time.Minute, "call %s was not dropped before %s: %s", first, last, out)
			}
		})
	}
}
