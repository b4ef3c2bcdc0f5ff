package login_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/login"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// The gateway never starts a login. If a server needs one, the gateway reports
// the command to run. That command calls store.Login.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "remit-example-")
	check(err)
	defer func() { _ = os.RemoveAll(dir) }()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer server.Close()

	store := login.Store{Folder: filepath.Join(dir, "login"), Fix: func(server string) string { return "my login " + server }}
	servers, err := config.Parse("gateway.json", []byte(`{"mcpServers": {"tickets": {"url": "`+server.URL+`"}}}`), os.LookupEnv)
	check(err)
	g, err := gateway.Open(ctx, servers, gateway.Options{Authorize: store.Handler})
	check(err)
	defer func() { _ = g.Close() }()
	g.Start()
	g.Await(ctx)
	for _, s := range g.ServerStatuses() {
		fmt.Println(s.Server, s.Login)
		fmt.Println(s.Why)
	}
	kept, err := store.All()
	check(err)
	fmt.Println(kept[0].Needs)
	// Output:
	// tickets true
	// server tickets needs a login: it requires one, and there is no login; run: my login tickets
	// it requires one, and there is no login
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
