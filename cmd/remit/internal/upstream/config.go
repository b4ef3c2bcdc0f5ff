package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// AddFlag adds the flag of the gateway's configuration.
func AddFlag(cmd *cobra.Command, u *state.Upstreams) {
	cmd.Flags().StringVar(&u.Config, "config", "", "gateway configuration `FILE`, which lists MCP servers: docs/reference/gateway-config.md")
}

// ReadServers reads the configuration that a command line names. Path is its
// only path.
func ReadServers(a *cli.App, u *state.Upstreams) (c config.Config, path string, err error) {
	if path, err = filepath.Abs(u.Config); err != nil {
		return c, "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--config %q cannot be read", u.Config), Why: cli.PlainError(err)}
	}
	if len(u.Drafts) > 0 {
		if text, err = config.AddEntries(text, u.Drafts); err != nil {
			return c, "", &cli.Problem{Code: cli.ExitUsage, What: "the configuration of the gateway is not valid", Why: cli.PlainError(err)}
		}
	}
	c, err = config.Parse(u.Config, text, func(name string) (string, bool) {
		value := a.Getenv(name)
		return value, value != ""
	})
	if err != nil {
		return c, "", &cli.Problem{
			Code: cli.ExitUsage, What: "the configuration of the gateway is not valid", Why: strings.ReplaceAll(err.Error(), "\n", "; "),
			Fix: "docs/reference/gateway-config.md says what it may hold",
		}
	}
	return c, path, nil
}
