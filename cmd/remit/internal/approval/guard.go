package approval

import (
	"encoding/json"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// CheckApprover rejects approvals if an agent can control the command, unless the
// settings permit that. It asks for the passphrase if there is one.
func CheckApprover(a *cli.App, p *state.Workspace, calls ...*revert.Call) error {
	var askers [][]json.RawMessage
	for _, c := range calls {
		var of []json.RawMessage
		if c.Asked != nil {
			of = c.Asked.Processes
		}
		askers = append(askers, of)
	}
	return CheckAskers(a, p, askers...)
}

// CheckAskers is CheckApprover for the processes of each approval request.
func CheckAskers(a *cli.App, p *state.Workspace, requests ...[]json.RawMessage) error {
	s, err := ReadSettings(p.StateDir)
	if err != nil {
		return err
	}
	who := cli.UnknownCaller()
	if a.Caller != nil {
		who = a.Caller()
	}
	for _, askers := range requests {
		if s.allowed(askers) {
			continue
		}
		if err := who.Refuses(askers); err != nil {
			return approverProblem(p, err)
		}
	}
	if len(requests) == 0 && !s.Unattended && who.Terminal != nil {
		return approverProblem(p, who.Terminal)
	}
	if s.Passphrase == nil {
		return nil
	}
	return askPassphrase(a, s.Passphrase)
}

// approverProblem returns the error for an approval from this process. It says where
// approvals are possible.
func approverProblem(p *state.Workspace, why error) error {
	return &cli.Problem{
		Code: cli.ExitDenied, What: "a person must approve, and an agent can be behind this command", Why: why.Error(),
		Fix: "run it at a terminal that the agent did not start; to take approvals from anywhere, a person runs there: " + p.Hint("approval", "allow-unattended"),
	}
}
