package doctor

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/policyfile"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/internal/hookclient"
)

// checkAgents reports the connected coding agents, their policy and what the
// resident process wrote. It reports nothing if none is connected.
func checkAgents(a *cli.App, project string, tell func(Finding)) {
	at, err := agentPlace(a, project)
	if err != nil {
		return
	}
	connected := 0
	for _, c := range connect.Clients() {
		r, err := c.Status(at)
		if err != nil {
			tell(Finding{Where: "agents", Check: c.Name(), Is: Failing, What: "its configuration cannot be read: " + cli.PlainError(err), Fix: "remit connect lists the files"})
			continue
		}
		if found, is := hooksFinding(r); is {
			connected++
			tell(found)
		}
	}
	if connected == 0 {
		return
	}
	tell(agentPolicy())
	log := filepath.Join(filepath.Dir(at.State), filepath.Base(hookclient.Folder), "log")
	if info, err := os.Stat(log); err == nil && info.Size() > 0 {
		tell(Finding{Where: "agents", Check: "log", Is: Weaker, What: "the resident process wrote messages", Fix: "read " + cli.Quote(log) + ", then delete it"})
	}
}

// hooksFinding returns the finding about the hooks of a client. It returns false
// if the client has no hooks of remit.
func hooksFinding(r connect.Report) (Finding, bool) {
	f := Finding{Where: "agents", Check: r.Client, Is: Weaker, Fix: "remit connect " + r.Client}
	switch r.Coverage.OwnTools {
	case connect.HooksOn:
		f.Is, f.Fix, f.What = Healthy, "", "its hooks start this remit; if a hook fails, the call: "+string(r.Coverage.OnFailure)
	case connect.HooksPartial:
		f.What = "remit has hooks for some of its events only"
	case connect.HooksStale:
		f.Is, f.What = Failing, "its hooks start a remit that is missing"
	case connect.HooksOther:
		f.What = "its hooks start another remit"
	default:
		return f, false
	}
	return f, true
}

// agentPolicy checks the policy of coding agents: the user's, or the pack.
func agentPolicy() Finding {
	path, what := "builtin:coding-agent", "the pack builtin:coding-agent decides"
	if config, err := os.UserConfigDir(); err == nil {
		own := filepath.Join(config, "remit", "coding-agent")
		if _, err := os.Stat(own); err == nil {
			path, what = own, own+" decides"
		}
	}
	if _, err := policyfile.Load([]string{path}, false); err != nil {
		return Finding{
			Where: "agents", Check: "policy", Is: Failing, What: "the policy of coding agents does not load, so remit denies each call: " + cli.PlainError(err),
			Fix: "remit policy check " + cli.Quote(path),
		}
	}
	return Finding{Where: "agents", Check: "policy", Is: Healthy, What: what}
}

// agentPlace returns the environment of this user's clients.
func agentPlace(a *cli.App, project string) (at connect.Environment, err error) {
	home := a.Getenv("HOME")
	if runtime.GOOS == "windows" {
		home = a.Getenv("USERPROFILE")
	}
	base, err := state.Home(a.Getenv)
	if err != nil {
		return at, err
	}
	at = connect.Environment{OS: runtime.GOOS, Home: home, State: filepath.Join(base, "remit", "connect"), Env: a.Getenv, Project: project}
	at.Command, err = os.Executable()
	return at, err
}
