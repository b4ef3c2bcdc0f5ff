//go:build (amd64 || arm64) && !portable

package netclient

import "github.com/remit-dev/remit/internal/hookclient"

// Run handles a command line of a hook, and returns the exit code. If handled
// is false, no resident process could answer.
func Run(args []string) (code int, handled bool) { return hookclient.Run(args) }

// Build identifies the program of this process, and when it was built or
// installed.
func Build() string { return hookclient.Build() }

// Settle asks the resident process to end the prompts of a workspace, so that
// they can be reverted. It returns an error if the process did not do so, and
// nil if none runs.
func Settle(home, dir string) error { return hookclient.Settle(home, dir) }
