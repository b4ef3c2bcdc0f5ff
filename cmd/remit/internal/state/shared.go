package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/postgres"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// JournalVariable is the environment variable that names a shared journal.
const JournalVariable = "REMIT_JOURNAL"

// Node is a journal that several nodes share, opened by one of them.
type Node interface {
	journal.Journal
	NodeID() string
	Roots(ctx context.Context) ([]record.Root, error)
	SetRoots(ctx context.Context, roots []record.Root) error
	SetApprovalRules(ctx context.Context, rules json.RawMessage) error
}

// FindJournal sets the location of the journal, and rejects one that is invalid
// or holds a password.
func (p *Workspace) FindJournal(env func(string) string) error {
	from := "--journal"
	if p.Journal == "" {
		p.Journal, from = env(JournalVariable), JournalVariable
	} else {
		p.journalGiven = true
	}
	if p.Journal == "" {
		return nil
	}
	problem := func(why, fix string) error {
		return &cli.Problem{Code: cli.ExitUsage, What: from + " cannot be used", Why: why, Fix: fix} // the location can hold a password
	}
	switch why := checkLocation(p.Journal); why {
	case "":
		return nil
	case hasPassword:
		return problem(why, "leave the password out, and put it into the file that PGPASSFILE names")
	default:
		return problem(why, "write postgres://USER@HOST/DATABASE")
	}
}

// checkNode rejects a local journal in the state folder of a node: the user
// forgot the location of the journal.
func (p *Workspace) checkNode() error {
	if p.Journal != "" || !postgres.HasNode(p.StateDir) || sqlite.Exists(p.StateDir) {
		return nil
	}
	return &cli.Problem{
		Code: cli.ExitUsage, What: fmt.Sprintf("the state folder %q belongs to a node of a shared journal, and no journal is named", p.StateDir),
		Fix: "name the journal with --journal or " + JournalVariable + ", or name another folder with --state",
	}
}

// JournalFlags returns the flags that select the same journal. A location from
// the environment is still there for the next command.
func (p *Workspace) JournalFlags() []string {
	if !p.journalGiven {
		return nil
	}
	return []string{"--journal", p.Journal}
}

// IsShared reports whether several nodes share the journal.
func (p *Workspace) IsShared() bool { return p.Journal != "" }

// JournalName names the journal for a message.
func (p *Workspace) JournalName() string {
	if p.IsShared() {
		return p.Journal
	}
	return p.StateDir
}

// HasJournal reports whether the workspace has a journal. Opening a shared one
// tells.
func (p *Workspace) HasJournal() bool { return p.IsShared() || sqlite.Exists(p.StateDir) }

// openShared opens a journal in PostgreSQL.
func (p *Workspace) openShared(ctx context.Context, opts ...postgres.Option) (journal.Journal, error) {
	n, err := postgres.OpenNode(ctx, p.Journal, p.StateDir, opts...)
	if err != nil {
		return nil, p.sharedProblem(err)
	}
	return n, nil
}

// readShared opens a journal in PostgreSQL for a command that reads it. A state
// folder without an identity is no node, and does not become one: a person can
// have mistyped it. Only a named root needs a node to work in.
func (p *Workspace) readShared(ctx context.Context) (journal.Journal, error) {
	switch {
	case postgres.HasNode(p.StateDir) || len(p.Moved) > 0 && !p.stateGiven:
		return p.openShared(ctx, postgres.Existing())
	case p.stateGiven:
		return nil, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("there is no node in %q", p.StateDir),
			Fix: "check --state: it names the folder of a run or a server; leave it out to read the journal from any folder",
		}
	}
	return p.Look(ctx)
}

// Look opens a journal in PostgreSQL as the node of the state folder, or without
// a node if the folder has no identity. It creates nothing.
func (p *Workspace) Look(ctx context.Context) (journal.Journal, error) {
	if postgres.HasNode(p.StateDir) {
		return p.openShared(ctx, postgres.Existing())
	}
	j, err := postgres.Open(ctx, p.Journal, postgres.Existing())
	if err != nil {
		return nil, p.sharedProblem(err)
	}
	return j, nil
}

// NodeOf returns the node whose files a session has, or "" if it is the node of
// this command or the journal is on one machine.
func (p *Workspace) NodeOf(ctx context.Context, j journal.Journal, session string) (string, error) {
	if !p.IsShared() {
		return "", nil
	}
	body, err := callview.SessionRecord(ctx, j, session)
	if err != nil || body == nil {
		return "", err
	}
	if n, ok := j.(Node); ok && n.NodeID() == body.State.Node {
		return "", nil
	}
	return body.State.Node, nil
}

// HintOn returns a command that works on a node, "" for this one. The flags of
// this command name nothing there.
func (p *Workspace) HintOn(node string, args ...string) string {
	if node == "" {
		return p.Hint(args...)
	}
	return fmt.Sprintf("remit %s (on node %s; list the nodes: %s)", strings.Join(args, " "), node, p.Hint("nodes"))
}

// NodeProblem returns the problem of a command that needs the files of another
// node.
func (p *Workspace) NodeProblem(what string, err *agent.NodeError) *cli.Problem {
	return &cli.Problem{Code: cli.ExitUsage, What: what, Why: err.Error(), Fix: "run the command on that node; list the nodes: " + p.Hint("nodes")}
}

// PostgresOf returns the journal in PostgreSQL that a command opened.
func PostgresOf(j journal.Journal) (*postgres.Journal, bool) {
	switch j := j.(type) {
	case *postgres.Node:
		return j.Journal, true
	case *postgres.Journal:
		return j, true
	}
	return nil, false
}

// sharedProblem returns the problem of a journal that cannot be opened.
func (p *Workspace) sharedProblem(err error) error {
	e := &cli.Problem{
		Code: cli.ExitInternal, What: fmt.Sprintf("the journal %s cannot be opened", p.Journal), Why: strings.TrimPrefix(strings.Join(strings.Fields(cli.PlainError(err)), " "), "open journal in PostgreSQL: "),
		Fix: "check the host, the database and the role of --journal or " + JournalVariable + ", and that the server runs; the password comes from the file that PGPASSFILE names",
	}
	switch {
	case postgres.IsRefused(err):
		e.Code = cli.ExitUsage
	case errors.Is(err, postgres.ErrPooler):
		e.Code, e.Fix = cli.ExitUsage, "name the server itself with --journal, or let the pooler work in session mode"
	case errors.Is(err, postgres.ErrNoJournal):
		e.Code, e.Fix = cli.ExitUsage, "check the database of --journal; the first run or server creates a journal in it"
	case errors.Is(err, postgres.ErrCopiedNode):
		e.Code, e.Fix = cli.ExitUsage, "name an empty folder with --state, which becomes a node of its own; if the other processes ended or were moved, repeat the command"
	case errors.Is(err, postgres.ErrNewer):
		e.Code, e.Fix = cli.ExitUsage, "use the newest remit of the nodes of this journal"
	case errors.Is(err, postgres.ErrForeignSchema):
		e.Code, e.Fix = cli.ExitUsage, "name the role that owns the journal with --journal"
	case errors.Is(err, postgres.ErrRights):
		e.Code, e.Fix = cli.ExitUsage, "name the role that owns the journal with --journal, or grant this role the rights that docs/guides/nodes.md lists"
	case errors.Is(err, postgres.ErrUnsafeFolder):
		e.What, e.Fix = fmt.Sprintf("the state folder %q cannot be used", p.StateDir), "name a folder with --state that only you can enter"
	}
	return e
}
