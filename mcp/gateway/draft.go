package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/remit-dev/remit/tool"
)

// EntryDraft is an entry drafted from the hints of a server, for an operator to
// review. Without a Tool it is the server's sandbox.
type EntryDraft struct {
	Server, Tool string
	Entry        json.RawMessage
}

// Drafts returns entries for the tools that have none. A tool that the server
// calls read-only gets the effect class pure; every other gets pivot. A tool
// with the hint openWorldHint false sends nothing elsewhere. A tool in the
// sandbox gets neither. If keep names roots, each tool of a server with a
// Command outside the sandbox gets a snapshot of them, so that its changes
// there can be reverted.
func (g *Gateway) Drafts(keep ...string) (out []EntryDraft) {
	for _, u := range g.servers {
		for _, d := range u.declared().of(tools) {
			if _, there := u.cfg.Tools[d.name]; there {
				continue
			}
			out = append(out, EntryDraft{Server: u.cfg.Name, Tool: d.name, Entry: d.draft(u, keep)})
		}
	}
	return out
}

func (d definition) draft(u *upstream, keep []string) json.RawMessage {
	type undo struct {
		Snapshot []string `json:"snapshot"`
	}
	said := struct {
		Draft bool   `json:"draft"`
		Class string `json:"effectClass,omitempty"`
		To    string `json:"destination,omitempty"`
		Idem  bool   `json:"idempotent,omitempty"`
		Undo  *undo  `json:"undo,omitempty"`
	}{Draft: true, Idem: d.hints.Idempotent != nil && *d.hints.Idempotent}
	switch reads := d.hints.ReadOnly; {
	case u.box != nil: // the sandbox observes its writes
	case reads != nil && *reads:
		said.Class = "pure"
	default: // also without hints: the policy asks
		said.Class = "pivot"
	}
	if open := d.hints.OpenWorld; u.box == nil && open != nil && !*open {
		said.To = string(tool.NoDestination)
	}
	if u.box == nil && u.cfg.URL == "" && len(keep) > 0 { // it can act anywhere, despite its hints
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

// AddEntries adds entries to the text of a configuration. It adds the client
// features of their servers if the text has none. Comments and order stay.
func AddEntries(text []byte, drafts []EntryDraft) ([]byte, error) {
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	type step struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	patch := []step{} // an empty list, not null
	made := map[string]bool{}
	need := func(path string) {
		if !made[path] && v.Find(path) == nil {
			patch = append(patch, step{"add", path, json.RawMessage("{}")})
		}
		made[path] = true
	}
	for _, d := range drafts {
		at := "/remit/servers/" + escape(d.Server)
		for _, path := range []string{"/remit", "/remit/servers", at, at + "/tools"} {
			need(path)
		}
		if asks := at + "/asks"; !made[asks] && v.Find(asks) == nil { // writes the default, to make it visible
			patch = append(patch, step{"add", asks, json.RawMessage(`["` + Elicitation + `"]`)})
			made[asks] = true
		}
		if d.Tool == "" {
			patch = append(patch, step{"add", at + "/sandbox", d.Entry})
			continue
		}
		patch = append(patch, step{"add", at + "/tools/" + escape(d.Tool), d.Entry})
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if err := v.Patch(raw); err != nil {
		return nil, fmt.Errorf("the entries cannot be added: %w", err)
	}
	v.Format()
	return v.Pack(), nil
}

// escape returns a name as a step of a JSON pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
