package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// A server of notes that knows nothing of undo: what one of its calls writes is reverted, since its entry says which file
// that is.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "remit-example-")
	check(err)
	defer func() { _ = os.RemoveAll(dir) }()
	dir, err = filepath.EvalSymlinks(dir)
	check(err)
	self, err := os.Executable() // this test is a server too
	check(err)
	server, err := json.Marshal(map[string]any{"command": self, "env": map[string]string{"SERVER": "store", "STORE": filepath.Join(dir, "notes.json")}})
	check(err)
	servers, err := config.Parse("gateway.json", []byte(`{
		"mcpServers": {"notes": `+string(server)+`}, // as clients have it
		"remit": {"servers": {"notes": {"tools": {
			"get": {"effectClass": "pure"},
			"set": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/notes.json"]}},
		}}}},
	}`), os.LookupEnv)
	check(err)
	g, err := gateway.Open(ctx, servers, gateway.Options{Roots: map[string]string{"workspace": dir}})
	check(err)
	defer func() { _ = g.Close() }()
	g.Start()
	g.Await(ctx) // a program that serves does not wait

	rt, err := agent.New(agent.Tools(g.Tools()...), agent.Root("workspace", dir), agent.Log(slog.New(slog.DiscardHandler)))
	check(err)
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	check(err)
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		out, err := tx.Invoke(ctx, "notes__set", tool.Args{"key": "a", "value": "1"})
		fmt.Println(out.Status)
		return err
	})
	check(err)
	report, err := s.Revert(ctx, id, revert.Options{})
	check(err)
	_, err = os.Stat(filepath.Join(dir, "notes.json"))
	fmt.Println(report.State, os.IsNotExist(err))
	// Output:
	// done
	// reverted true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
