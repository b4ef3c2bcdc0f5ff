package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/ctxperm/database/postgres"
	"github.com/remit-dev/remit/ctxperm/database/sqlite"
)

// AddDatabaseFlag adds the flag that names databases. Commands that revert need it
// only for a database that has moved, or that needs a password.
func AddDatabaseFlag(cmd *cobra.Command, p *Workspace) {
	cmd.Flags().StringArrayVar(&p.databases, "database", nil, "database for calls, as `NAME=LOCATION`, such as main=sqlite:app.db or main=postgres://agent@host/app; the password comes from PGPASSFILE")
}

// DatabaseOptions opens the named databases, and a way to those that a record
// names. The command closes them at its end.
func DatabaseOptions(a *cli.App, p *Workspace) ([]agent.Option, error) {
	named := map[string]string{}
	for _, d := range p.databases {
		name, at, ok := strings.Cut(d, "=")
		if _, twice := named[name]; !ok || name == "" || at == "" || twice {
			why := "it names no database"
			if twice {
				why = "two databases have this name"
			}
			// The location can contain a password, so the message does not
			// repeat it.
			return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--database %s cannot be used", cli.Printable(name)), Why: why, Fix: "write --database NAME=sqlite:PATH or NAME=postgres://USER@HOST/DATABASE"}
		}
		if err := p.checkDatabase(name, at); err != nil {
			return nil, err
		}
		named[name] = at
	}
	d, err := handle.New([]handle.Kind{sqlite.Kind(), postgres.Kind()}, named)
	if err != nil {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: "a database cannot be used", Why: err.Error(), Fix: "write --database NAME=sqlite:PATH or NAME=postgres://USER@HOST/DATABASE"}
	}
	a.OnClose(d.Close)
	return []agent.Option{agent.Driver(d)}, nil
}

// DatabaseFlags returns the flags with which another command reaches the same
// databases. It omits a location that can contain a password.
func (p *Workspace) DatabaseFlags() (flags []string) {
	for _, d := range p.databases {
		if name, at, _ := strings.Cut(d, "="); !strings.HasPrefix(at, "sqlite:") {
			d = name + "=LOCATION"
		}
		flags = append(flags, "--database", d)
	}
	return flags
}

// checkDatabase rejects the journal as a database: calls could change their own
// records.
func (p *Workspace) checkDatabase(name, at string) error {
	path, ok := strings.CutPrefix(at, "sqlite:")
	if !ok {
		return nil
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil // opening it reports the error
	}
	journal, err := os.Stat(filepath.Join(p.StateDir, "journal.db"))
	if err != nil || !os.SameFile(file, journal) {
		return nil
	}
	return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the database %s is the journal itself", name), Why: "calls could change their own record", Fix: "name another database"}
}
