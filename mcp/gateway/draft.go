package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// Draft is an entry as the hints of a server suggest it. It is the server's own word, for somebody to look at.
type Draft struct {
	Server, Tool string
	Entry        json.RawMessage
}

// Drafts are entries for the tools that have none: one that says that it only reads may run, one that says that it writes is asked
// about, and of one that says nothing the entry says nothing, so that it is denied. A server in the sandbox needs none but for
// what only reads. Where keep names roots, what says that it writes, of a server by command, has these kept before each call, so
// that what it changes there can be taken back.
func (g *Gateway) Drafts(keep ...string) (out []Draft) {
	for _, u := range g.servers {
		for _, d := range u.declared().of(tools) {
			if _, there := u.cfg.Tools[d.name]; there {
				continue
			}
			out = append(out, Draft{Server: u.cfg.Name, Tool: d.name, Entry: d.draft(u, keep)})
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
		Idem  bool   `json:"idempotent,omitempty"`
		Undo  *undo  `json:"undo,omitempty"`
	}{Draft: true, Idem: d.hints.Idempotent != nil && *d.hints.Idempotent}
	reads := d.hints.ReadOnly
	switch {
	case u.box != nil: // the sandbox tells what it writes
	case reads != nil && *reads:
		said.Class = "pure"
	case reads == nil && d.hints.Destructive == nil:
	case len(keep) > 0 && u.cfg.URL == "": // what is elsewhere changes nothing here
		said.Class, said.Undo = "reversible", &undo{}
		for _, root := range keep {
			said.Undo.Snapshot = append(said.Undo.Snapshot, "file://"+root+"/**")
		}
	default:
		said.Class = "pivot"
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return json.RawMessage(`{"draft":true}`)
	}
	return raw
}

// Write adds entries to the text of a configuration, and to their servers what those may ask the client of a call, where nothing
// says that. Its comments and order stay as they are.
func Write(text []byte, drafts []Draft) ([]byte, error) {
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	type step struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	var patch []step
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
