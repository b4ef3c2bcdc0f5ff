//go:build !linux

package hook

import (
	"context"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

func runDaemon(context.Context, *cli.App, int) error {
	return &cli.Problem{Code: cli.ExitUsage, What: "remit cannot decide for coding agents on this system yet", Fix: "use Linux, or remit serve with the agent's own tools off"}
}
