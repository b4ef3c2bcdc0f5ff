package main

import (
	"encoding/json"
	"errors"

	"github.com/remit-dev/remit/internal/lineage"
	"github.com/remit-dev/remit/revert"
)

// caller describes the process that runs the command, and so who can control
// it.
type caller struct {
	terminal error         // why no person types into it; nil: standard input is its terminal, and it runs in the foreground
	chain    lineage.Chain // the process and its ancestors
	unknown  error         // why the chain is unknown
}

// nobodyKnown returns the caller of a command about which nothing is known.
func nobodyKnown() caller {
	return caller{terminal: errors.New("nothing is known of this process"), unknown: errors.New("nothing is known of this process")}
}

// thisProcess returns the caller of this command.
func thisProcess() caller {
	c := caller{terminal: typedInto()}
	c.chain, c.unknown = lineage.Own()
	return c
}

// refuses returns why an answer to a call must not come from this process, or
// nil. Askers holds the recorded processes that made the call.
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

// mayApprove rejects approvals if an agent can control the command, unless the
// settings permit that. It asks for the passphrase if there is one.
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

// notHere returns the error for an approval from this process. It says where
// approvals are possible.
func notHere(p *workspaceState, why error) error {
	return &problem{
		code: exitDenied, what: "a person must approve, and an agent can be behind this command", why: why.Error(),
		fix: "run it at a terminal that the agent did not start; to take approvals from anywhere, a person runs there: " + p.hint("approval", "allow-unattended"),
	}
}
