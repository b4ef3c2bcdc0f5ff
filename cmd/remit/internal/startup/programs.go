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

func AddSandboxFlag(cmd *cobra.Command, p *state.Workspace) {
	cmd.Flags().StringVar(&p.Sandbox, "sandbox", "strict", "the least `LEVEL` of sandbox that a program runs in: strict or partial; remit doctor says what there is here")
	cmd.Flags().BoolVar(&p.GitAuthor, "git-author", true, "tell programs user.name and user.email of your git configuration, for commits in repositories that set none")
}

// Programs runs them at the level that was given.
func Programs(p *state.Workspace, j journal.Journal) (*process.Driver, error) {
	d, err := programsOn(j, process.Level(p.Sandbox), p.GitAuthor)
	if err != nil {
		return nil, cli.UsageProblem("--sandbox: " + strings.TrimPrefix(err.Error(), "process: "))
	}
	return d, nil
}

// programsOn runs programs whose effects lie beside the journal until they are applied:
// that folder is in no root.
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
