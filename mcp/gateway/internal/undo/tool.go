package undo

import (
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/mcp/gateway/internal/upstream"
)

// Tool records what a revert of the calls of one tool needs, and reverts
// them.
type Tool struct {
	Upstream *upstream.Upstream
	Entry    config.Entry
	Name     string // the server's name for the tool
	Attempts *Attempts
}
