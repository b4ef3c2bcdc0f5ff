//go:build !linux

package agentguard

import "github.com/remit-dev/remit/cmd/remit/internal/cli"

// ForeignDaemon returns "": there is no resident process on this system.
func ForeignDaemon(*cli.App) (what string, err error) { return "", nil }

// inherited returns nothing: this system does not show the environment of other
// processes.
func inherited(cli.Caller) []string { return nil }
