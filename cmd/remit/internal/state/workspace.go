package state

import (
	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// Workspace says which workspace, and where its journal is kept.
type Workspace struct {
	Dir, StateDir string
	Moved         []string // NAME=DIR: where the folders of roots are by now
	databases     []string // NAME=LOCATION each
	Services      services
	Declared      Declarations
	Upstreams     Upstreams
	Sandbox       string   // the least level, of commands that run programs
	GitAuthor     bool     // programs are told who commits are by
	MustExist     bool     // there is nothing to do without a journal
	ForCompletion bool     // for completion: the command says what is wrong
	GivenFlags    []string // flags to repeat in a hint, so that it leads to the same journal
}

// AddFlags adds the flags that find a journal.
func AddFlags(cmd *cobra.Command, p *Workspace) {
	cmd.Flags().Var(cli.FolderFlag{To: &p.Dir}, "workspace", "workspace `DIR`; its root is named workspace (default: the current folder)")
	cmd.Flags().Var(cli.FolderFlag{To: &p.StateDir}, "state", "`DIR` that holds the journal (default: one for each workspace in the user's state folder)")
}
