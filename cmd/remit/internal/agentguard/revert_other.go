//go:build !linux

package agentguard

import (
	"context"
	"errors"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/revert"
)

// revertBy returns a function that always fails: there is no resident process
// here.
func revertBy(string) func(context.Context, cli.AgentRevert) (revert.Report, error) {
	return func(context.Context, cli.AgentRevert) (revert.Report, error) {
		return revert.Report{}, errors.New("there is no resident process of remit on this system")
	}
}
