package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/internal/hookclient"
)

// checkAgents checks the hooks of the coding agents on this machine, and the
// process that answers them.
func checkAgents(a *cli.App, project string, tell func(Finding)) {
	connected := false
	for _, c := range connect.Clients() {
		d, err := agentguard.ClientDrift(a, c.Name(), project)
		if err != nil {
			tell(Finding{Where: "agents", Check: "hooks", Is: Failing, What: c.Title() + ": " + cli.PlainError(err), Fix: "see remit connect"})
			continue
		}
		if connected = connected || d.Connected; d.Client != "" {
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
	home, err := state.Home(a.Getenv)
	if err == nil && (connected || policyfile.OwnAgentPolicy(policyfile.AgentPaths())) {
		tell(agentPolicy(home))
	}
	if !connected {
		return
	}
	for _, limit := range connect.Limits(runtime.GOOS) {
		tell(Finding{Where: "agents", Check: "system", Is: Weaker, What: limit, Fix: "use Linux if you need more"})
	}
	if err != nil {
		return
	}
	log := filepath.Join(home, filepath.FromSlash(hookclient.Folder), "log")
	if info, err := os.Stat(log); err == nil && info.Size() > 0 {
		tell(Finding{Where: "agents", Check: "log", Is: Weaker, What: "the resident process wrote messages", Fix: "read " + cli.Quote(log) + ", then empty it; do not delete it: the process that runs writes to it"})
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

// agentPolicy checks the policy of coding agents: the user's, or the pack. home
// is the folder for state.
func agentPolicy(home string) Finding {
	out := Finding{Where: "agents", Check: "policy", Is: Healthy}
	paths := policyfile.AgentPaths()
	named := strings.Join(paths, " and ")
	if out.What = named + " decides"; len(paths) > 1 {
		out.What = named + " decide"
	}
	engine, err := policyfile.LoadAgents(paths)
	if err != nil {
		out.Is, out.What = Failing, err.Error()+". Each call of a session that begins now is denied; sessions that already run keep the earlier policy"
		out.Fix = "remit policy check " + cli.Quote(paths[len(paths)-1])
		return out
	}
	was, err := policyfile.LoadedAgentPolicy(home)
	if err != nil {
		out.Is, out.What, out.Fix = Weaker, cli.PlainError(err), "look at the policy; remit writes the record anew when it loads another policy"
		return out
	}
	if what := (policyfile.AgentPolicy{Paths: paths, Revision: engine.Revision()}).WaitsSince(was); what != "" {
		out.Is, out.What = Failing, what+". Sessions that already run follow it then, too"
		out.Fix = "look who changed it; restore it if you did not"
	}
	return out
}
