package upstream

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/login"
)

// Logins returns the logins of a state folder for the servers of a
// configuration.
func Logins(p *state.Workspace, config string) login.Store {
	state, err := filepath.Abs(p.StateDir)
	if err != nil {
		state = p.StateDir
	}
	return login.Store{Folder: filepath.Join(state, "mcp", "login"), Fix: func(server string) string {
		// A client can start the gateway in any folder, so the hint contains
		// absolute paths.
		return "remit gateway login " + server + " --config " + cli.Quote(config) + " --state " + cli.Quote(state)
	}}
}

// LoginWords describes the resource, the scopes and the end of a login.
func LoginWords(k login.Info) string {
	words := "for " + cli.Printable(k.Resource)
	if len(k.Scopes) > 0 {
		words += ": " + cli.Printable(strings.Join(k.Scopes, " "))
	}
	switch {
	case k.Renews:
		words += "; it is renewed by itself"
	case !k.Expires.IsZero():
		words += "; it ends at " + k.Expires.UTC().Format(time.RFC3339)
	}
	return words
}
