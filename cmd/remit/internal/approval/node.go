package approval

import (
	"encoding/json"

	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// CheckNodeRequest rejects work on requests between nodes if the client of a
// server of tools can control the command. An answering terminal is not needed:
// people ask from scripts too.
func CheckNodeRequest(a *cli.App, p *state.Workspace) error {
	servers, who, err := agentguard.Servers(a, p.StateDir)
	if err != nil {
		return nodeRequestProblem(p, "the servers that run are unknown: "+cli.PlainError(err))
	}
	s, err := ReadSettings(p.StateDir)
	if err != nil {
		return err
	}
	who.Terminal = nil
	for _, server := range servers {
		askers := []json.RawMessage{server}
		if s.allowed(askers) {
			continue
		}
		if why := who.Refuses(askers); why != nil {
			return nodeRequestProblem(p, why.Error())
		}
	}
	return nil
}

func nodeRequestProblem(p *state.Workspace, why string) error {
	return &cli.Problem{
		Code: cli.ExitDenied, What: "no other node is asked from here, because an agent can be behind this command", Why: why,
		Fix: "run the command in a terminal that was not started by the agent, or on the node that has the files; to permit it from anywhere, a person runs there: " + p.Hint("approval", "allow-unattended"),
	}
}
