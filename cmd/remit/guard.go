package main

import (
	"encoding/json"
	"errors"

	"github.com/remit-dev/remit/internal/lineage"
	"github.com/remit-dev/remit/revert"
)

// caller is what is known of the process that runs the command, and so of who can be behind it.
type caller struct {
	terminal error         // why no person types into it; nil: standard input is its terminal, and it runs in the foreground
	chain    lineage.Chain // it, and the processes above it
	unknown  error         // why that is not known
}

// nobodyKnown is the caller of a command about which nothing was found out.
func nobodyKnown() caller {
	return caller{terminal: errors.New("nothing is known of this process"), unknown: errors.New("nothing is known of this process")}
}

// thisProcess is the caller of the command that runs.
func thisProcess() caller {
	c := caller{terminal: typedInto()}
	c.chain, c.unknown = lineage.Own()
	return c
}

// refuses says why an answer to a call must not come from here; nil where it may. Askers are what the call has on record of the
// processes that asked.
func (c caller) refuses(askers []json.RawMessage) error {
	if c.terminal != nil {
		return c.terminal
	}
	if len(askers) == 0 || errors.Is(c.unknown, lineage.ErrUnknown) {
		return nil
	}
	if c.unknown != nil {
		return errors.New("which processes started this one cannot be told: " + c.unknown.Error())
	}
	for _, asker := range askers {
		var a lineage.Asker
		if err := json.Unmarshal(asker, &a); err != nil {
			return errors.New("what is on record of a process that asked cannot be read")
		}
		if why := a.Bars(c.chain); why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// mayApprove refuses to approve calls where an agent can be behind the command, unless the person has said otherwise, and asks for the
// passphrase where there is one.
func (a *app) mayApprove(p *workspaceState, calls ...*revert.Call) error {
	s, err := readApproval(p.state)
	if err != nil {
		return err
	}
	if !s.Unattended {
		who := nobodyKnown()
		if a.caller != nil {
			who = a.caller()
		}
		for _, c := range calls {
			var askers []json.RawMessage
			if c.Asked != nil {
				askers = c.Asked.Askers
			}
			if err := who.refuses(askers); err != nil {
				return notHere(p, err)
			}
		}
		if len(calls) == 0 && who.terminal != nil {
			return notHere(p, who.terminal)
		}
	}
	if s.Passphrase == nil {
		return nil
	}
	return a.askPassphrase(s.Passphrase)
}

// notHere says that approvals are not taken from here, and where they are.
func notHere(p *workspaceState, why error) error {
	return &problem{
		code: exitDenied, what: "a person must approve, and an agent can be behind this command", why: why.Error(),
		fix: "run it at a terminal that the agent did not start; to take approvals from anywhere, a person runs there: " + p.hint("approval", "allow-unattended"),
	}
}
