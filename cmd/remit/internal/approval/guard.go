package approval

import (
	"encoding/json"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/revert"
)

// CheckApprover rejects approvals if an agent can control the command, unless the
// settings permit that. It asks for the passphrase if there is one.
func CheckApprover(a *cli.App, p *state.Workspace, s Settings, calls ...*revert.Call) error {
	return CheckAskers(a, p, s, askersOf(calls)...)
}

// askersOf returns the processes that asked for the approval of each call.
func askersOf(calls []*revert.Call) (requests [][]json.RawMessage) {
	for _, c := range calls {
		var of []json.RawMessage
		if c.Asked != nil {
			of = c.Asked.Processes
		}
		requests = append(requests, of)
	}
	return requests
}

// CheckAskers is CheckApprover for the processes of each approval request.
func CheckAskers(a *cli.App, p *state.Workspace, s Settings, requests ...[]json.RawMessage) error {
	who, err := checkCaller(a, p, s, requests)
	if err != nil {
		return err
	}
	if len(requests) == 0 && !s.Unattended && who.Terminal != nil {
		return approverProblem(p, s, who.Terminal)
	}
	if s.Passphrase == nil {
		return nil
	}
	return askPassphrase(a, s.Passphrase)
}

// CheckPage rejects an approval on a page if an agent can control the command
// that serves it, or if approvals need a passphrase, which is typed at a
// terminal. Askers are the processes that asked.
func CheckPage(a *cli.App, p *state.Workspace, s Settings, id string, askers []json.RawMessage) error {
	if s.Passphrase != nil {
		return &cli.Problem{Code: cli.ExitDenied, What: "approvals need a passphrase, which is typed at a terminal", Fix: p.Hint("pending", id) + " shows the command"}
	}
	_, err := checkCaller(a, p, s, [][]json.RawMessage{askers})
	return err
}

// checkCaller rejects approvals of requests whose agent can control the command.
func checkCaller(a *cli.App, p *state.Workspace, s Settings, requests [][]json.RawMessage) (who cli.Caller, err error) {
	who = cli.UnknownCaller()
	if a.Caller != nil {
		who = a.Caller()
	}
	for _, askers := range requests {
		if s.allowed(askers) {
			continue
		}
		if err := who.Refuses(askers); err != nil {
			return who, approverProblem(p, s, err)
		}
	}
	return who, nil
}

// approverProblem returns the error for an approval from this process. It says where
// approvals are possible.
func approverProblem(p *state.Workspace, s Settings, why error) error {
	there := "there: " + p.Hint("approval", "allow-unattended")
	if s.node != "" {
		there = "on node " + s.node + ", whose rules count: " + (&state.Workspace{}).Hint("approval", "allow-unattended")
	}
	return &cli.Problem{
		Code: cli.ExitDenied, What: "a person must approve, and an agent can be behind this command", Why: why.Error(),
		Fix: "run it at a terminal that the agent did not start; to take approvals from anywhere, a person runs " + there,
	}
}
