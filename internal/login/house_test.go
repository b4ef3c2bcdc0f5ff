package login_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/login"
	"github.com/remit-dev/remit/internal/proof/logintest"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestMain lets the test be one of several gateways.
func TestMain(m *testing.M) {
	if folder := os.Getenv("LOGIN_FOLDER"); folder != "" {
		if err := renewMany(folder, os.Getenv("LOGIN_URL")); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// behind is a server of the protocol.
func behind() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "hello"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "hello"}}}, nil, nil
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
}

// tokenServer is a server that wants tokens, and where they are kept.
type tokenServer struct {
	*logintest.Server

	t     *testing.T
	store login.Store
	entry config.Server
	pages []string
}

func newTokenServer(t *testing.T, rules logintest.Rules) *tokenServer {
	t.Helper()
	h := &tokenServer{t: t, Server: logintest.New(t, behind(), rules)}
	h.store = login.Store{Folder: filepath.Join(t.TempDir(), "login"), Fix: func(server string) string { return "remit gateway login " + server }}
	h.entry = config.Server{Name: "s", URL: h.URL}
	return h
}

// login is a person who says yes.
func (h *tokenServer) login() (login.Info, error) {
	return h.store.Login(h.t.Context(), h.entry, func(page string) {
		h.pages = append(h.pages, page)
		h.Visit(page)
	})
}

// in logs in.
func (h *tokenServer) in() login.Info {
	h.t.Helper()
	k, err := h.login()
	require.NoError(h.t, err)
	return k
}

// call connects as the gateway does, and calls a tool.
func (h *tokenServer) call(ctx context.Context, url string) error {
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx,
		&sdk.StreamableClientTransport{Endpoint: url, OAuthHandler: h.store.Handler("s", url), MaxRetries: -1, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return err
	}
	_, err = cs.CallTool(ctx, &sdk.CallToolParams{Name: "hello"})
	_ = cs.Close()
	return err
}

// file is the one file of the folder, and what it says.
func (h *tokenServer) file() (path string, record map[string]any) {
	h.t.Helper()
	all, err := filepath.Glob(filepath.Join(h.store.Folder, "*.json"))
	require.NoError(h.t, err)
	require.Len(h.t, all, 1)
	text, err := os.ReadFile(all[0])
	require.NoError(h.t, err)
	require.NoError(h.t, json.Unmarshal(text, &record))
	return all[0], record
}

// change rewrites the one file.
func (h *tokenServer) change(how func(record map[string]any)) {
	h.t.Helper()
	path, record := h.file()
	how(record)
	text, err := json.Marshal(record)
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(path, text, 0o600))
}

// silent wants a text to hold nothing that is secret.
func (h *tokenServer) silent(text string) {
	h.t.Helper()
	for _, secret := range h.Secrets() {
		require.NotContains(h.t, text, secret)
	}
}
