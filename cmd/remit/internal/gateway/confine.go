package gateway

import (
	"fmt"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// draftSandboxes drafts a sandbox for each server that can have one, as if the file
// contained it. Roots has the form NAME=DIR.
func draftSandboxes(a *cli.App, p *state.Workspace, roots []string) error {
	c, _, err := upstream.ReadServers(a, &p.Upstreams)
	if err != nil {
		return err
	}
	folders := map[string]string{}
	for _, r := range roots {
		name, dir, err := state.ParseRoot(r)
		if err != nil {
			return err
		}
		folders[name] = dir
	}
	p.Upstreams.Outside = map[string]string{}
	for _, s := range c.Servers {
		d, ok, why := s.Confine(folders)
		switch {
		case ok:
			p.Upstreams.Drafts = append(p.Upstreams.Drafts, d)
		case why != "":
			p.Upstreams.Outside[s.Name] = why
		}
	}
	return nil
}

// unconfine removes the drafts of servers that do not start in their sandbox,
// and reports whether there were any.
func unconfine(p *state.Workspace, g *upstream.Gateway) bool {
	why := map[string]string{}
	for _, s := range g.ServerStatuses() {
		if !s.Connected {
			why[s.Server] = s.Why
		}
	}
	before := len(p.Upstreams.Drafts)
	p.Upstreams.Drafts = slices.DeleteFunc(p.Upstreams.Drafts, func(d config.EntryDraft) bool {
		reason, down := why[d.Server]
		if down {
			p.Upstreams.Outside[d.Server] = "it does not start there: " + reason
		}
		return down
	})
	return len(p.Upstreams.Drafts) < before
}

// draftedWords describes the drafts.
func draftedWords(drafts []config.EntryDraft) string {
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
