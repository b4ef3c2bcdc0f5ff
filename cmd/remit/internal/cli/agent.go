package cli

import (
	"context"
	"slices"

	"github.com/remit-dev/remit/revert"
)

// Agent is a coding agent that started a command. Below it, the command shows
// everything, and reverts only what the agent itself did.
type Agent struct {
	Client   string
	Why      string   // how the command is known to be the agent's
	Sessions []string // its sessions on the journal

	// Revert asks the resident process to revert a transaction of these
	// sessions, or to redo it. The policy decides.
	Revert func(ctx context.Context, r AgentRevert) (revert.Report, error)
}

// AgentRevert is a revert or a redo that an agent asks for.
type AgentRevert struct {
	ID        string   `json:"id"`
	Redo      bool     `json:"redo,omitempty"`
	Resources []string `json:"resources,omitempty"`
	NoMerge   bool     `json:"no_merge,omitempty"`
}

// Owns reports whether a session on the journal is one of the agent.
func (g *Agent) Owns(session string) bool { return slices.Contains(g.Sessions, session) }

// AgentProblem returns the error for what an agent must not do.
func (g *Agent) AgentProblem(what string) *Problem {
	return &Problem{
		Code: ExitDenied, What: what + ": a coding agent started this command", Why: g.Why,
		Fix: "a person runs it in a terminal that was not started by the agent; an agent can look at everything, and revert what it did itself",
	}
}
