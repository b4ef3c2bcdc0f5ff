//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/proof/logintest"
)

// hosted is a server by URL that wants OAuth, a configuration that names it, and a policy that allows all.
type hosted struct {
	*logintest.Server

	config, policy, workspace, state string
}

func newHosted(t *testing.T, rules logintest.Rules) *hosted {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "hello"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello"}}}, nil, nil
	})
	h := &hosted{Server: logintest.New(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil), rules)}
	h.workspace, h.state = testPlace(t)
	dir := t.TempDir()
	h.config, h.policy = filepath.Join(dir, "gateway.json"), filepath.Join(dir, "allow.rego")
	require.NoError(t, os.WriteFile(h.config, fmt.Appendf(nil, `{"mcpServers": {"far": {"type": "http", "url": %q}, "near": {"command": "nosuch"}}}`, h.URL), 0o600))
	require.NoError(t, os.WriteFile(h.policy, []byte("package remit\n\nallow contains \"all\" if true\n"), 0o600))
	return h
}

// run is one command, and what it wrote. The person at the browser is the test.
func (h *hosted) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	w := testEnv(strings.NewReader(""), &o, &e)
	w.ErrTerminal = true
	w.OpenPage = func(page string) error {
		h.Visit(page)
		return errors.New("there may be none")
	}
	code = run(t.Context(), args, w)
	return code, o.String(), e.String()
}

// TestLoginCommand: a gateway that nobody has logged in for starts, asks nobody, and names the command to run. Once it was run, the
// server's tools are there. What is secret is in the one file that is for it, and nowhere else.
func TestLoginCommand(t *testing.T) {
	remit := build(t)
	h := newHosted(t, logintest.Rules{SaysIss: true, Iss: "own", Scopes: []string{"b", "a"}})
	var told strings.Builder
	serve := func() *sdk.ClientSession {
		cmd := exec.Command(remit, "gateway", "--config", h.config, "--policy", h.policy, "--workspace", h.workspace, "--state", h.state)
		cmd.Stderr = &told
		return joinAs(t, "2025-11-25", &sdk.CommandTransport{Command: cmd})
	}
	cs := serve()
	list, err := cs.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range list.Tools {
		require.NotContains(t, tool.Name, "far__")
	}
	require.NoError(t, cs.Close())
	hint := regexp.MustCompile(`server far needs a login: it requires one, and there is no login; run: remit ([^"\n]+)`).FindStringSubmatch(told.String())
	require.NotNil(t, hint, told.String())
	_, found, _ := h.run(t, "doctor", "--workspace", h.workspace, "--state", h.state)
	require.Contains(t, found, "server far needs a login: it requires one, and there is no login")
	require.Contains(t, found, "remit "+hint[1])

	code, out, errs := h.run(t, append(strings.Fields(hint[1]), "--json")...)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "To log in at far, open this page in a browser on this machine:\n"+h.Base+"/authorize?")
	answer := strictObject(t, strings.TrimSpace(out))
	scopes, ok := answer.Get("scopes")
	require.True(t, ok)
	require.Equal(t, `["a","b"]`, string(scopes.Canonical()))

	cs = serve()
	r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "far__hello"})
	require.NoError(t, err)
	require.False(t, r.IsError, "%+v", r.Content)
	call, ok := r.Meta["remit.dev/call"].(string)
	require.True(t, ok)
	h.Revoke()
	r, err = cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "far__hello"})
	require.NoError(t, err)
	require.True(t, r.IsError)
	text, ok := r.Content[0].(*sdk.TextContent)
	require.True(t, ok)
	require.Contains(t, text.Text, "server far needs a login: it refuses the token that it was just given")
	require.NoError(t, cs.Close())

	_, shown, _ := h.run(t, "show", call, "--state", h.state, "--json")
	_, logged, _ := h.run(t, "log", "--state", h.state, "--json")
	_, found, _ = h.run(t, "doctor", "--workspace", h.workspace, "--state", h.state, "--json")
	require.Contains(t, found, "server far needs a login: it refuses the token that it was just given")
	everything := told.String() + out + errs + text.Text + shown + logged + found + h.kept(t)
	for _, secret := range h.Secrets() {
		require.NotContains(t, everything, secret)
	}
}

// kept is all that the state folder holds, but for the files that are for logins, and all that the workspace does.
func (h *hosted) kept(t *testing.T) (text string) {
	t.Helper()
	logins := 0
	for _, dir := range []string{h.state, h.workspace} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if filepath.Dir(path) == filepath.Join(h.state, "mcp", "login") {
				logins++
				return nil
			}
			raw, err := os.ReadFile(path)
			text += string(raw)
			return err
		}))
	}
	require.Positive(t, logins)
	return text
}

// TestLoginOutcomes: how a login can end, and what is told of it.
func TestLoginOutcomes(t *testing.T) {
	t.Parallel()
	h := newHosted(t, logintest.Rules{Expires: 3600})
	at := []string{"--config", h.config, "--state", h.state}
	login := func(args ...string) (int, string, string) {
		return h.run(t, append(append([]string{"gateway", "login"}, args...), at...)...)
	}
	code, out, _ := login("far")
	require.Zero(t, code)
	require.Equal(t, "logged in at far, for "+h.URL+"; it is renewed by itself\n", out)
	_, found, _ := h.run(t, "doctor", "--workspace", h.workspace, "--state", h.state)
	require.Contains(t, found, "logged in at far, for "+h.URL+"; it is renewed by itself")
	h.Now(func(r *logintest.Rules) { r.NoRefresh = true })
	code, out, _ = login("far")
	require.Zero(t, code)
	require.Contains(t, out, "; it ends at 20")

	h.Now(func(r *logintest.Rules) { r.Error = "access_denied" })
	code, _, errs := login("far")
	require.Equal(t, int(cli.ExitDenied), code)
	require.Contains(t, errs, "not logged in at far")
	h.Now(func(r *logintest.Rules) { r.Error = "server_error" })
	code, _, _ = login("far")
	require.Equal(t, int(cli.ExitFailed), code)
	code, _, errs = login("far", "--no-browser", "--timeout", "1ms")
	require.Equal(t, int(cli.ExitFailed), code)
	require.Contains(t, errs, "the browser did not return within 1ms")
	code, _, errs = login("near")
	require.Equal(t, int(cli.ExitFailed), code)
	require.Contains(t, errs, "it is started by a command")

	code, out, _ = h.run(t, "gateway", "logout", "far", "--state", h.state, "--json")
	require.Zero(t, code)
	require.JSONEq(t, `{"server": "far", "was": true}`, out)
	_, out, _ = h.run(t, "gateway", "logout", "far", "--state", h.state)
	require.Equal(t, "there was no login at far\n", out)
	require.NoError(t, os.RemoveAll(filepath.Join(h.state, "mcp", "login")))
	require.NoError(t, os.WriteFile(filepath.Join(h.state, "mcp", "login"), nil, 0o600))
	code, _, _ = h.run(t, "gateway", "logout", "far", "--state", h.state)
	require.Equal(t, int(cli.ExitInternal), code)
	_, found, _ = h.run(t, "doctor", "--workspace", h.workspace, "--state", h.state)
	require.Contains(t, found, "what is kept of logins cannot be read")
	h.Now(func(r *logintest.Rules) { r.Error = "" })
	code, _, _ = login("far")
	require.Equal(t, int(cli.ExitFailed), code)
}
