package doctor

import (
	"os"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
)

// checkLogins reports the logins, and the servers that need one.
func checkLogins(p *state.Workspace, tell func(Finding)) {
	config, err := os.ReadFile(upstream.NoteFile(p))
	if err != nil {
		config = []byte("FILE")
	}
	store := upstream.Logins(p, string(config))
	all, err := store.All()
	if err != nil {
		tell(Finding{Where: "gateway", Check: "login", Is: Failing, What: "what is kept of logins cannot be read: " + cli.PlainError(err), Fix: "give yourself the right: chmod 700 " + cli.Quote(store.Folder)})
	}
	for _, k := range all {
		if k.Needs != "" {
			tell(Finding{Where: "gateway", Check: "login", Is: Weaker, What: "server " + k.Server + " needs a login: " + k.Needs, Fix: store.Fix(k.Server)})
			continue
		}
		tell(Finding{Where: "gateway", Check: "login", Is: Healthy, What: "logged in at " + k.Server + ", " + upstream.LoginWords(k)})
	}
}
