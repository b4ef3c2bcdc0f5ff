package startup

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/revert/journal"
)

// AddSandboxFlag adds the flags about programs.
func AddSandboxFlag(cmd *cobra.Command, p *state.Workspace) {
	cmd.Flags().StringVar(&p.Sandbox, "sandbox", "strict", "minimum `LEVEL` of the sandbox for programs: strict or partial; remit doctor reports the level of this machine")
	cmd.Flags().BoolVar(&p.GitAuthor, "git-author", true, "give programs user.name and user.email of your git configuration, for commits in repositories that set none")
	cmd.Flags().BoolVar(&p.ProgramNetwork, "program-network", false, "give programs a proxy to the hosts that the policy allows (connect https://HOST)")
}

// Programs returns the driver of programs at the level of the flags.
func Programs(p *state.Workspace, j journal.Journal) (*process.Driver, error) {
	d, err := programsOn(j, process.Level(p.Sandbox), p.GitAuthor)
	if err != nil {
		return nil, cli.UsageProblem("--sandbox: " + strings.TrimPrefix(err.Error(), "process: "))
	}
	return d, nil
}

// programsOn returns a driver of programs. It stores proposed changes beside
// the journal, outside every root.
func programsOn(j journal.Journal, least process.Level, author bool) (*process.Driver, error) {
	cfg := process.Config{Require: least}
	if author {
		cfg.Author = process.GitAuthor
	}
	if on, ok := j.(interface{ Dir() string }); ok {
		cfg.Scratch = filepath.Join(on.Dir(), "scratch")
	}
	return process.New(cfg)
}
