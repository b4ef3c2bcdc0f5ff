package gateway

import "github.com/remit-dev/remit/mcp/gateway/config"

// The configuration is a package of its own, because the packages that make up
// a gateway read it too. These are its names for host programs.
type (
	// Config is the configuration of a gateway: servers, and the entries of
	// their tools.
	Config = config.Config
	// Server is the configuration of one server.
	Server = config.Server
	// Sandbox runs a server with a Command in the sandbox.
	Sandbox = config.Sandbox
	// OAuth is the configured login at a server by URL.
	OAuth = config.OAuth
	// Entry is the configuration of one tool of a server.
	Entry = config.Entry
	// ToolCallTemplate is a call of another tool of the same server.
	ToolCallTemplate = config.ToolCallTemplate
	// ResultCheck verifies a call by a read-only tool.
	ResultCheck = config.ResultCheck
	// ClientFeature is a client feature that a server can use during a call.
	ClientFeature = config.ClientFeature
	// EntryDraft is an entry drafted from the hints of a server.
	EntryDraft = config.EntryDraft
	// LoginError says that a server needs a login, and that the request had no
	// effect.
	LoginError = config.LoginError
)

// The client features.
const (
	Elicitation = config.Elicitation
	Sampling    = config.Sampling
	Roots       = config.Roots
)

// ErrNotSent is in an error of the Authorize handler that kept a request from
// being sent. A later request can succeed.
var ErrNotSent = config.ErrNotSent

// ParseConfig parses a configuration file, as config.Parse does.
func ParseConfig(name string, text []byte, env func(string) (string, bool)) (Config, error) {
	return config.Parse(name, text, env)
}

// AddEntries adds entries to the text of a configuration, as config.AddEntries
// does.
func AddEntries(text []byte, drafts []EntryDraft) ([]byte, error) {
	return config.AddEntries(text, drafts)
}
