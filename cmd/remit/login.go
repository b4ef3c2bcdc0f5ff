package main

import (
	"os"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
)

// checkLogins tells at which servers somebody is logged in, or has to.
func checkLogins(p *state.Workspace, tell func(finding)) {
	config, err := os.ReadFile(upstream.NoteFile(p))
	if err != nil {
		config = []byte("FILE")
	}
	store := upstream.Logins(p, string(config))
	all, err := store.All()
	if err != nil {
		tell(finding{Where: "gateway", Check: "login", Is: failing, What: "what is kept of logins cannot be read: " + cli.PlainError(err), Fix: "give yourself the right: chmod 700 " + cli.Quote(store.Folder)})
	}
	for _, k := range all {
		if k.Needs != "" {
			tell(finding{Where: "gateway", Check: "login", Is: weaker, What: "server " + k.Server + " needs a login: " + k.Needs, Fix: store.Fix(k.Server)})
			continue
		}
		tell(finding{Where: "gateway", Check: "login", Is: healthy, What: "logged in at " + k.Server + ", " + upstream.LoginWords(k)})
	}
}
