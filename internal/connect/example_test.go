package connect_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/connect"
)

// A client's servers are led through the gateway, and back.
func Example() {
	home, err := os.MkdirTemp("", "remit-connect-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	file := filepath.Join(home, ".cursor", "mcp.json")
	before := `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "server-files"]}}}`
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		log.Fatal(err)
	}

	cursor, err := connect.ClientByName("cursor")
	if err != nil {
		log.Fatal(err)
	}
	place := connect.Environment{OS: "linux", Home: home, Command: "/usr/bin/remit", State: filepath.Join(home, "state")}
	show := func(r connect.Report, err error) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Files[0].State, r.Files[0].Servers[0].Name)
	}
	show(cursor.Status(place))
	show(cursor.Connect(place, connect.Write))
	show(cursor.Disconnect(place, connect.Write))

	after, err := os.ReadFile(file)
	fmt.Println(string(after) == before, err)
	// Output:
	// direct files
	// routed files
	// direct files
	// true <nil>
}
