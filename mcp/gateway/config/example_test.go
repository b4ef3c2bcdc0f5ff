package config_test

import (
	"fmt"
	"os"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// A configuration has the servers as MCP clients list them, and an entry for each tool whose effects are known.
func Example() {
	c, err := config.Parse("gateway.json", []byte(`{
		"mcpServers": {"notes": {"command": "notes-server"}},
		"remit": {"servers": {"notes": {"tools": {
			"set": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/notes.json"]}},
		}}}},
	}`), os.LookupEnv)
	fmt.Println(err)
	fmt.Println(c.Servers[0].Tools["set"].Class)

	_, err = config.Parse("gateway.json", []byte(`{"mcpServers": {"notes": {}}}`), os.LookupEnv)
	fmt.Println(err)
	// Output:
	// <nil>
	// reversible
	// gateway.json:1:26: "command" or "url" is missing
}
