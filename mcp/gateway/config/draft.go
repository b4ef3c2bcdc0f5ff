package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// EntryDraft is an entry drafted from the hints of a server, for an operator to
// review. Without a Tool it is the server's sandbox.
type EntryDraft struct {
	Server, Tool string
	Entry        json.RawMessage
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
