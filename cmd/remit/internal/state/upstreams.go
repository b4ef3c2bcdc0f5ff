package state

import "github.com/remit-dev/remit/mcp/gateway/config"

// Upstreams selects the MCP servers whose tools are served too.
type Upstreams struct {
	Config string              // configuration file
	Strict bool                // quarantine the definitions at the first start too
	Lazy   bool                // start no server before a call needs it
	Drafts []config.EntryDraft // used as if the file contained them

	Confined bool              // try servers without reviewed entries in a sandbox
	Outside  map[string]string // why a server runs outside the sandbox
}
