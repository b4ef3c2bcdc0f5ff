package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/remit-dev/remit/tool"
)

// EntryDraft is an entry as the hints of a server suggest it: the server's own word, for a person to look at. Without a Tool it is the
// sandbox of the server.
type EntryDraft struct {
	Server, Tool string
	Entry        json.RawMessage
}

// Drafts are entries for the tools that have none: one that says that it only reads may run, and every other is asked about. One that
// says that it reaches a closed set of things (openWorldHint false) sends nothing elsewhere. In the sandbox a tool needs neither. Where
// keep names roots, every tool of a server by command has these kept before each call, so that what it changes there can be taken back.
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
	case u.box != nil: // the sandbox tells what it writes
	case reads != nil && *reads:
		said.Class = "pure"
	default: // also of a tool that says nothing of itself: a person is asked
		said.Class = "pivot"
	}
	if open := d.hints.OpenWorld; u.box == nil && open != nil && !*open {
		said.To = string(tool.NoDestination)
	}
	if u.box == nil && u.cfg.URL == "" && len(keep) > 0 { // it may act anywhere, whatever it says
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

// AddEntries adds entries to the text of a configuration, and to their servers what those may ask the client of a call, where nothing
// says that. Its comments and order stay as they are.
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
	patch := []step{} // an empty one too is a list
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
		if asks := at + "/asks"; !made[asks] && v.Find(asks) == nil { // what holds where nothing is said, for somebody to see
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

// escape is a name as a step of a pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
