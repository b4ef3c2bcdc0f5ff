package gateway

import (
	"encoding/json"

	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// Drafts returns entries for the tools that have none. A tool that the server
// calls read-only gets the effect class pure; every other gets pivot. A tool
// with the hint openWorldHint false sends nothing elsewhere. A tool in the
// sandbox gets neither. If keep names roots, each tool of a server with a
// Command outside the sandbox gets a snapshot of them, so that its changes
// there can be reverted. Roles and trusted fields are guesses from names and
// formats. They are a proposal for a person, and do not count in a draft.
func (g *Gateway) Drafts(keep ...string) (out []config.EntryDraft) {
	for _, u := range g.servers {
		for _, d := range u.Declared().Of(definition.Tools) {
			if _, there := u.Server.Tools[d.Name]; there {
				continue
			}
			out = append(out, config.EntryDraft{Server: u.Server.Name, Tool: d.Name, Entry: draftOf(d, u, keep)})
		}
	}
	return out
}

// draftOf returns the entry of a definition.
func draftOf(d definition.Definition, u *upstream.Upstream, keep []string) json.RawMessage {
	type undo struct {
		Snapshot []string `json:"snapshot"`
	}
	said := struct {
		Draft bool   `json:"draft"`
		Class string `json:"effectClass,omitempty"`
		To    string `json:"destination,omitempty"`
		Idem  bool   `json:"idempotent,omitempty"`
		Undo  *undo  `json:"undo,omitempty"`

		Roles   provenance.Roles `json:"roles,omitempty"`
		Trusted []string         `json:"trustedFields,omitempty"`
	}{
		Draft: true, Idem: d.Hints.Idempotent != nil && *d.Hints.Idempotent,
		Roles: d.DraftRoles(), Trusted: d.DraftTrustedFields(),
	}
	switch reads := d.Hints.ReadOnly; {
	case u.Sandbox != nil: // the sandbox observes its writes
	case reads != nil && *reads:
		said.Class = "pure"
	default: // also without hints: the policy asks
		said.Class = "pivot"
	}
	if open := d.Hints.OpenWorld; u.Sandbox == nil && open != nil && !*open {
		said.To = string(tool.NoDestination)
	}
	if u.Sandbox == nil && u.Server.URL == "" && len(keep) > 0 { // it can act anywhere, despite its hints
		said.Undo = &undo{}
		for _, root := range keep {
			said.Undo.Snapshot = append(said.Undo.Snapshot, "file://"+root+"/**")
		}
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return json.RawMessage(`{"draft":true}`)
	}
	return raw
}
