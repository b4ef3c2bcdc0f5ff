package guides_test

import (
	"context"
	"io"
	"net/http/httptest"
	"os"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// served returns a runtime with tools for the guide's servers.
func served(t *testing.T) (*agent.Runtime, *agent.Session) {
	t.Helper()
	prompt, err := tool.Create("review_prompt", "What a reviewer looks at.",
		func(_ context.Context, in string) (string, error) { return "Review " + in, nil }, tool.Pure())
	require.NoError(t, err)
	rt, dir := runtime(t, agent.Tools(prompt), agent.Tools(builtin.Files()...), agent.SuspendForApproval())
	require.NoError(t, os.WriteFile(dir+"/a.txt", []byte("a note"), 0o600))
	return rt, session(t, rt, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
}

// TestServeInGo checks that the server ends at the end of standard input.
func TestServeInGo(t *testing.T) {
	ctx := t.Context()
	rt, session := served(t)
	stdin, stdout := os.Stdin, os.Stdout
	defer func() { os.Stdin, os.Stdout = stdin, stdout }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { _ = null.Close() }()
	os.Stdin, os.Stdout = null, null
	// guide: guides/embed-mcp.md
	srv, err := mcp.New(rt, mcp.Options{})             // rt has agent.SuspendForApproval(): calls can wait for approval
	err = srv.RunIO(ctx, os.Stdin, os.Stdout, session) // or
	handler, err := srv.Handler(mcp.HTTPOptions{})     // a client sends session.Token()
	// end of guide
	require.NoError(t, err)
	web := httptest.NewServer(handler)
	defer web.Close()
	response, err := web.Client().Post(web.URL, "application/json", nil)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, response.Body)
	require.NoError(t, response.Body.Close())
	require.Equal(t, 401, response.StatusCode, "a token is needed")
}

func TestServeResources(t *testing.T) {
	ctx := t.Context()
	rt, session := served(t)
	srv, err := mcp.New(rt, mcp.Options{})
	require.NoError(t, err)
	require.NoError(t, addResources(srv))
	here, there := sdk.NewInMemoryTransports()
	go func() { _ = srv.Run(ctx, there, session) }()
	client, err := sdk.NewClient(&sdk.Implementation{Name: "example"}, nil).Connect(ctx, here, nil)
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	r, err := client.ReadResource(ctx, &sdk.ReadResourceParams{URI: "notes://a.txt"})
	require.NoError(t, err)
	require.Contains(t, r.Contents[0].Text, "a note")
	p, err := client.GetPrompt(ctx, &sdk.GetPromptParams{Name: "review", Arguments: map[string]string{"input": "a.txt"}})
	require.NoError(t, err)
	require.Len(t, p.Messages, 1)
}

func addResources(srv *mcp.Server) error {
	// guide: guides/embed-mcp.md
	err := srv.SetResources(
		mcp.Resource{URI: "notes://{path}", Name: "notes", MediaType: "text/plain", Tool: "file_read"},
	)
	if err != nil {
		return err
	}
	err = srv.SetPrompts(
		mcp.Prompt{Name: "review", Description: "Reviews a file", Tool: "review_prompt"},
	)
	// end of guide
	return err
}
