package main

import (
	"fmt"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/mcp/gateway"
)

// draftSandboxes drafts a sandbox for each server that can have one, as if the file
// contained it. Roots has the form NAME=DIR.
func draftSandboxes(a *cli.App, p *workspaceState, roots []string) error {
	c, _, err := readServers(a, &p.upstreams)
	if err != nil {
		return err
	}
	folders := map[string]string{}
	for _, r := range roots {
		name, dir, err := rootOf(r)
		if err != nil {
			return err
		}
		folders[name] = dir
	}
	p.upstreams.outside = map[string]string{}
	for _, s := range c.Servers {
		d, ok, why := s.Confine(folders)
		switch {
		case ok:
			p.upstreams.drafts = append(p.upstreams.drafts, d)
		case why != "":
			p.upstreams.outside[s.Name] = why
		}
	}
	return nil
}

// unconfine removes the drafts of servers that do not start in their sandbox,
// and reports whether there were any.
func unconfine(p *workspaceState, g *gatewayRuntime) bool {
	why := map[string]string{}
	for _, s := range g.ServerStatuses() {
		if !s.Connected {
			why[s.Server] = s.Why
		}
	}
	before := len(p.upstreams.drafts)
	p.upstreams.drafts = slices.DeleteFunc(p.upstreams.drafts, func(d gateway.EntryDraft) bool {
		reason, down := why[d.Server]
		if down {
			p.upstreams.outside[d.Server] = "it does not start there: " + reason
		}
		return down
	})
	return len(p.upstreams.drafts) < before
}

// draftedWords describes the drafts.
func draftedWords(drafts []gateway.EntryDraft) string {
	boxes := 0
	for _, d := range drafts {
		if d.Tool == "" {
			boxes++
		}
	}
	words := fmt.Sprintf("%d entries", len(drafts)-boxes)
	if boxes > 0 {
		words += fmt.Sprintf(" and the sandbox of %s", cli.Count(boxes, "server"))
	}
	return words
}

// writeServers reports the servers that are not available, and those that run
// outside the sandbox although it was requested.
func writeServers(a *cli.App, p *workspaceState, g *gatewayRuntime) {
	for _, s := range g.ServerStatuses() {
		why, outside := p.upstreams.outside[s.Server]
		switch {
		case !s.Connected:
			a.ErrStyle().Problem(a.Err, "remit: ", p.unavailable(s))
			a.ExitWith(cli.ExitInternal)
		case outside:
			a.ErrStyle().Problem(a.Err, "remit: ", &cli.Problem{
				What: "server " + s.Server + " gets no sandbox", Why: why,
				Fix: `write its "sandbox" by hand, as docs/reference/gateway-config.md says; until then its calls can change anything on this machine`,
			})
		}
	}
}
