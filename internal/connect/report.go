package connect

import "slices"

// FileState is the state of a client's file.
type FileState string

// The states of a file.
const (
	StateAbsent     FileState = "absent" // the file is missing
	StateEmpty      FileState = "empty"  // the file has no servers
	StateDirect     FileState = "direct" // the client starts its servers itself
	StateRouted     FileState = "routed" // its servers are behind the gateway
	StateMixed      FileState = "mixed"  // some are behind the gateway, and others could be
	StateUnreadable FileState = "broken" // the file is unreadable
)

// Report says what Connect, Disconnect or Status found and changed. A preview
// says what would change.
type Report struct {
	Client   string    `json:"client"`
	Title    string    `json:"title"`
	Preview  bool      `json:"preview,omitempty"` // nothing was written
	Files    []File    `json:"files"`
	Gateways []Gateway `json:"gateways,omitempty"` // gateway configurations that changed
	Coverage Coverage  `json:"coverage,omitzero"`  // after the change
}

// Changed reports whether any file changed, or would change in a preview.
func (r Report) Changed() bool {
	for _, f := range r.Files {
		if f.Changed {
			return true
		}
	}
	return false
}

// Configs lists the gateway configurations that hold servers of the client.
func (r Report) Configs() (paths []string) {
	for _, f := range r.Files {
		for _, s := range f.Servers {
			if s.Gateway != "" && !slices.Contains(paths, s.Gateway) {
				paths = append(paths, s.Gateway)
			}
		}
	}
	return paths
}

// File is one file of a client.
type File struct {
	Path      string    `json:"path"`
	State     FileState `json:"state"`
	Hooks     HookState `json:"hooks,omitempty"` // of a file that can lead the client's own tools to remit
	Error     string    `json:"error,omitempty"` // why the file is unreadable
	Changed   bool      `json:"changed,omitempty"`
	Identical bool      `json:"exact,omitempty"` // disconnected: byte for byte as before
	Servers   []Server  `json:"servers,omitempty"`
	Notes     []string  `json:"notes,omitempty"`
	Backup    string    `json:"backup,omitempty"`
	Diff      string    `json:"diff,omitempty"` // in a preview, without the values of env and headers

	tools bool   // the client's own tools depend on it
	off   string // why no hook of the client runs
}

// Server is a server in a file, or one that was moved from it.
type Server struct {
	Name        string `json:"name"`
	Scope       Scope  `json:"scope"`
	Project     string `json:"project,omitempty"`
	Gateway     string `json:"gateway,omitempty"` // the gateway configuration that contains it
	GatewayName string `json:"as,omitempty"`      // its name there, if it differs
	Why         string `json:"why,omitempty"`     // why it stays
}

// Gateway is one configuration of the gateway.
type Gateway struct {
	Path    string   `json:"path"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Kept    []string `json:"kept,omitempty"` // not removed: changed, or used by another client
	Diff    string   `json:"diff,omitempty"`
}
