//go:build !linux

package agentguard

import "github.com/remit-dev/remit/cmd/remit/internal/cli"

// ForeignDaemon returns "": there is no resident process on this system.
func ForeignDaemon(*cli.App) (what string, err error) { return "", nil }
