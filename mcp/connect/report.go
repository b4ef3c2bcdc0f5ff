package connect

import "slices"

// FileState is how a file stands.
type FileState string

// The states of a file.
const (
	StateAbsent     FileState = "absent" // there is no such file
	StateEmpty      FileState = "empty"  // it names no servers
	StateDirect     FileState = "direct" // the client starts its servers itself
	StateRouted     FileState = "routed" // its servers are behind the gateway
	StateMixed      FileState = "mixed"  // some are, and others could be
	StateUnreadable FileState = "broken" // it cannot be read
)

// Report is what was found, done, or with a preview would be done.
type Report struct {
	Client   string    `json:"client"`
	Title    string    `json:"title"`
	Preview  bool      `json:"preview,omitempty"` // nothing was written
	Files    []File    `json:"files"`
	Gateways []Gateway `json:"gateways,omitempty"` // configurations that changed
}

// Changed reports whether any file did, or would.
func (r Report) Changed() bool {
	for _, f := range r.Files {
		if f.Changed {
			return true
		}
	}
	return false
}

// Configs lists the configurations of the gateway that hold servers of the client.
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
	Error     string    `json:"error,omitempty"` // what is wrong with a broken one
	Changed   bool      `json:"changed,omitempty"`
	Identical bool      `json:"exact,omitempty"` // disconnected: it is byte for byte as before
	Servers   []Server  `json:"servers,omitempty"`
	Notes     []string  `json:"notes,omitempty"`
	Backup    string    `json:"backup,omitempty"`
	Diff      string    `json:"diff,omitempty"` // of a preview, without the values of env and headers
}

// Server is one server that a file names or named.
type Server struct {
	Name        string `json:"name"`
	Scope       Scope  `json:"scope"`
	Project     string `json:"project,omitempty"`
	Gateway     string `json:"gateway,omitempty"` // the configuration that it is in
	GatewayName string `json:"as,omitempty"`      // its name there, where that is another one
	Why         string `json:"why,omitempty"`     // it stays where it is
}

// Gateway is one configuration of the gateway.
type Gateway struct {
	Path    string   `json:"path"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Kept    []string `json:"kept,omitempty"` // not removed: changed since, or another client's too
	Diff    string   `json:"diff,omitempty"`
}
