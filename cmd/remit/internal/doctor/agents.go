package doctor

import (
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/connect"
)

// checkAgents checks the hooks of the coding agents on this machine, and the
// process that answers them.
func checkAgents(a *cli.App, project string, tell func(Finding)) {
	for _, c := range connect.Clients() {
		d, err := agentguard.ClientDrift(a, c.Name(), project)
		if err != nil {
			tell(Finding{Where: "agents", Check: "hooks", Is: Failing, What: c.Title() + ": " + cli.PlainError(err), Fix: "see remit connect"})
			continue
		}
		if d.Client != "" {
			hookFindings(d, tell)
		}
	}
	what, err := agentguard.ForeignDaemon(a)
	switch {
	case err != nil:
		tell(Finding{Where: "agents", Check: "daemon", Is: Failing, What: cli.PlainError(err), Fix: "end that process; the next event of an agent starts another one"})
	case what != "":
		tell(Finding{Where: "agents", Check: "daemon", Is: Healthy, What: what})
	}
}

func hookFindings(d connect.Drift, tell func(Finding)) {
	connectIt := "remit connect " + d.Client
	switch {
	case len(d.Changes) > 0:
		tell(Finding{
			Where: "agents", Check: "hooks", Is: Failing, What: d.Title + ": calls can run unseen: " + strings.Join(d.Changes, "; "),
			Fix: "look who changed it, restore the file, then " + connectIt,
		})
	case !d.Connected && d.Installed:
		tell(Finding{Where: "agents", Check: "hooks", Is: Weaker, What: d.Title + " is here, and its own tools do not lead to remit", Fix: connectIt})
	case d.Connected && d.FailsOpen:
		tell(Finding{
			Where: "agents", Check: "hooks", Is: Weaker, What: d.Title + " is connected; if a hook fails, the call: " + d.Failure,
			Fix: "nothing in remit can close this; an observed call that nobody saw cannot be reverted",
		})
	case d.Connected:
		tell(Finding{Where: "agents", Check: "hooks", Is: Healthy, What: d.Title + " is connected; if a hook fails, the call: " + d.Failure})
	}
}
