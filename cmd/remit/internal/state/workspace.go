package state

import (
	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// Workspace selects a workspace and its journal, and everything that the flags
// of a command say about them.
type Workspace struct {
	Dir, StateDir  string
	Journal        string   // location of a journal in PostgreSQL; empty: the journal is in the state folder
	journalGiven   bool     // a flag names it, not the environment
	stateGiven     bool     // a flag names the state folder
	found          bool     // Find ran
	Moved          []string // current folders of roots, as NAME=DIR
	databases      []string // NAME=LOCATION
	Services       Services
	Declared       Declarations
	Upstreams      Upstreams
	Sandbox        string   // minimum sandbox level of programs
	GitAuthor      bool     // programs get the user's git author
	ProgramNetwork bool     // programs reach hosts through a proxy
	MustExist      bool     // the command needs a journal
	ForCompletion  bool     // for completion, which reports no problem
	HintFlags      []string // flags that select the same journal in a hint
}

// AddFlags adds the flags that select a workspace and a journal.
func AddFlags(cmd *cobra.Command, p *Workspace) {
	cmd.Flags().Var(cli.FolderFlag{To: &p.Dir}, "workspace", "workspace `DIR`, the folder of the root workspace (default: the current folder)")
	cmd.Flags().Var(cli.FolderFlag{To: &p.StateDir}, "state", "`DIR` that contains the journal (default: one for each workspace, in the user's state folder)")
	cmd.Flags().StringVar(&p.Journal, "journal", "", "`URL` of a journal in PostgreSQL that several nodes share, such as postgres://remit@host/db; the password comes from PGPASSFILE (default: $REMIT_JOURNAL, or a journal in the state folder)")
}
