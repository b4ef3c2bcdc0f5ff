package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/revert"
)

// connectOptions holds the flags of connect and disconnect.
type connectOptions struct {
	project, config, workspace string
	preview, json, init        bool
	sandbox                    bool     // draft sandboxes too
	hooks                      []string // scopes, or none
	hooksOnly                  bool
	file, shape                string
	journal                    string // of the gateway
}

func (f connectOptions) mode() connect.Mode {
	if f.preview {
		return connect.Preview
	}
	return connect.Write
}

// ConnectCommand returns remit connect.
func ConnectCommand(a *cli.App) *cobra.Command {
	var f connectOptions
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Route a client's own tools and MCP servers through remit",
		Long: "Adds hooks to the client's configuration, which start remit hook before and after each call of the client's own tools.\n" +
			"Moves the MCP servers of the configuration into a configuration of the gateway. In their place, the client gets\n" +
			"one server: remit gateway. CLIENT is one of " + strings.Join(ClientNames(), ", ") + ";\n" +
			"--file names the file of another client.\n" +
			"Without CLIENT, the command lists the clients that it finds, with their files and how well remit covers them. The\n" +
			"command edits the files of the user and those of the project; hooks are in the user's files, unless --hooks says otherwise.\n\n" +
			"Comments and order stay, and so do other hooks. A server that behind the gateway does more or less than before stays where it is, and the\n" +
			"command reports the reason. The command stores a backup, and remit disconnect restores the files byte for byte. A\n" +
			"second connect also moves the servers that were added since. If the client writes its configuration itself, quit the\n" +
			"client first.\n\n" +
			"Exit codes: 2 usage, or a file that cannot be read or edited; the command then changes nothing.",
		Args: cli.WantArgs(0, 1, "the name of one client, or none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.place(a)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("keep") {
				p.Keep = cmd.Flag("keep").Value.String()
			}
			if cmd.Flags().Changed("keep-last") {
				p.KeepLast = cmd.Flag("keep-last").Value.String()
			}
			if p.Journal, err = f.sharedJournal(a); err != nil {
				return err
			}
			switch {
			case f.sandbox && !f.init:
				return cli.UsageProblem("--sandbox drafts a sandbox, which is done with --init: give both")
			case len(args) == 0 && f.file == "":
				return listClients(a, f, p)
			}
			c, err := f.client(args)
			if err != nil {
				return err
			}
			if err := f.setHooks(&p, c); err != nil {
				return err
			}
			if c.Name() == "claude-desktop" && f.workspace == "" {
				return &cli.Problem{
					Code: cli.ExitUsage, What: "Claude Desktop starts its servers in no folder of yours", Why: "the gateway works in the folder in which it is started",
					Fix: "name the one that calls may change: remit connect claude-desktop --workspace DIR",
				}
			}
			var configs []string
			err = runConnect(a, f, func() (connect.Report, error) {
				r, err := c.Connect(p, f.mode())
				if p.Journal != "" && r.Coverage.OwnTools == connect.HooksOn {
					r.Coverage.Notes = append(r.Coverage.Notes, "the hooks use the journal that "+state.JournalVariable+" names where the client starts")
				}
				if f.init && !r.Preview {
					configs = r.Configs()
				}
				return r, err
			}, func(pt cli.Style, w io.Writer, r connect.Report) { writeConnected(pt, w, r, f.init) })
			for _, config := range configs {
				if err == nil {
					err = draftEntries(cmd.Context(), a, f, p, config)
				}
			}
			return err
		},
		ValidArgs: ClientNames(),
	}
	cmd.Flags().BoolVar(&f.init, "init", false, "also draft entries for the tools, like remit init --write: reads run, and other calls need approval")
	cmd.Flags().StringSliceVar(&f.hooks, "hooks", []string{"user"}, "`SCOPE` of the hooks: user, project, local (Claude Code) or none. Repeatable")
	cmd.Flags().BoolVar(&f.hooksOnly, "hooks-only", false, "leave the MCP servers with the client")
	cmd.Flags().BoolVar(&f.sandbox, "sandbox", false, "with --init: draft a sandbox for each local server that starts in one, like remit init --sandbox")
	cmd.Flags().Var(cli.FolderFlag{To: &f.project}, "project", "project `DIR` with further configuration files of the client (default: the current folder)")
	cmd.Flags().StringVar(&f.config, "config", "", "gateway configuration `FILE` (default: one for the user, and one for each project)")
	cmd.Flags().StringVar(&f.journal, "journal", "", "`URL` of a journal in PostgreSQL for the gateway (default: $REMIT_JOURNAL, or the one from before)")
	cmd.Flags().Var(cli.FolderFlag{To: &f.workspace}, "workspace", "workspace `DIR` of the gateway of the user's servers (default: the folder in which the client starts the gateway)")
	cli.AddRetentionFlags(cmd, &keep, "with --keep or --keep-last, the gateway prunes old transactions: ")
	connectFlags(cmd, &f)
	return cmd
}

// DisconnectCommand returns remit disconnect.
func DisconnectCommand(a *cli.App) *cobra.Command {
	var f connectOptions
	cmd := &cobra.Command{
		Use: "disconnect [CLIENT]", Short: "Restore the configuration of a client",
		Long: "Restores every file that connecting the client changed, in all projects: byte for byte, if the file did not change\n" +
			"since. If the file changed since, the command removes only what remit connect added, keeps the change, and names the\n" +
			"backup. It removes a server from the gateway's configuration if the server did not change there and no other client\n" +
			"uses it.\n\n" +
			"Exit codes: 2 usage, a client that is not connected, or a file that cannot be read or edited; the command then changes\n" +
			"nothing.",
		Args: cli.WantArgs(0, 1, "the name of one client"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := f.place(a)
			if err != nil {
				return err
			}
			c, err := f.client(args)
			if err != nil {
				return err
			}
			return runConnect(a, f, func() (connect.Report, error) { return c.Disconnect(p, f.mode()) }, writeDisconnected)
		},
		ValidArgs: ClientNames(),
	}
	connectFlags(cmd, &f)
	return cmd
}

func connectFlags(cmd *cobra.Command, f *connectOptions) {
	cmd.Flags().StringVar(&f.file, "file", "", "configuration `FILE` of another client, in place of CLIENT")
	cmd.Flags().StringVar(&f.shape, "shape", "mcpServers", "with --file: `KEY` of the servers in the file, mcpServers or servers")
	cmd.Flags().BoolVar(&f.preview, "preview", false, "show the difference and write nothing; the values of env and headers are hidden")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object for each client")
	cmd.ValidArgsFunction = cobra.FixedCompletions(ClientNames(), cobra.ShellCompDirectiveNoFileComp)
}

// ClientNames lists the supported clients.
func ClientNames() (names []string) {
	for _, c := range connect.Clients() {
		names = append(names, c.Name())
	}
	return names
}

// place returns the environment of this user's client files.
func (f connectOptions) place(a *cli.App) (p connect.Environment, err error) {
	home := a.Getenv("HOME")
	if runtime.GOOS == "windows" {
		home = a.Getenv("USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return p, &cli.Problem{Code: cli.ExitUsage, What: "there is no home folder to look for clients in", Fix: "set HOME to an absolute path"}
	}
	base, err := state.Home(a.Getenv)
	if err != nil {
		return p, err
	}
	p = connect.Environment{OS: runtime.GOOS, Home: home, State: filepath.Join(base, "remit", "connect"), Env: a.Getenv}
	if p.Command, err = os.Executable(); err != nil {
		return p, err
	}
	project := f.project
	if project == "" {
		project = "."
	}
	if p.Project, err = state.RealFolder(project); err != nil {
		return p, err
	}
	if f.workspace != "" {
		if p.Workspace, err = state.RealFolder(f.workspace); err != nil {
			return p, err
		}
	}
	if f.config != "" {
		p.Gateway, err = filepath.Abs(f.config)
	}
	return p, err
}

// sharedJournal returns the location of the journal that the gateway gets; "":
// the user names none. The entry of the client must name it, because a client
// often starts without the environment of a shell.
func (f connectOptions) sharedJournal(a *cli.App) (string, error) {
	at := state.Workspace{Journal: f.journal}
	err := at.FindJournal(a.Getenv)
	return at.Journal, err
}

// client returns the client that the arguments name.
func (f connectOptions) client(args []string) (c connect.Client, err error) {
	switch {
	case len(args) > 0 == (f.file != ""):
		return c, cli.UsageProblem("name one client, or the file of another one with --file")
	case len(args) > 0:
		if c, err = connect.ClientByName(args[0]); err != nil {
			return c, cli.UsageProblem(err.Error())
		}
		return c, nil
	case f.shape != "mcpServers" && f.shape != "servers":
		return c, cli.UsageProblem(fmt.Sprintf("--shape %q: must be mcpServers or servers", f.shape))
	}
	path, err := filepath.Abs(f.file)
	return connect.FileClient(path, f.shape), err
}

// setHooks sets the scopes of the hooks.
func (f connectOptions) setHooks(p *connect.Environment, c connect.Client) error {
	for _, name := range f.hooks {
		scope := connect.Scope(name)
		switch {
		case name == "none" && len(f.hooks) == 1 && !f.hooksOnly:
		case name != "user" && name != "project" && name != "local":
			return cli.UsageProblem(fmt.Sprintf("--hooks %q: must be user, project, local or none", name))
		case c.HasHooks(*p, scope):
			p.Hooks = append(p.Hooks, scope)
		case scope != connect.User || f.hooksOnly:
			return cli.UsageProblem(fmt.Sprintf("%s has no hooks of the scope %s", c.Title(), name))
		}
	}
	p.HooksOnly = f.hooksOnly
	return nil
}

// runConnect connects or disconnects a client, and reports the result.
func runConnect(a *cli.App, f connectOptions, do func() (connect.Report, error), tell func(cli.Style, io.Writer, connect.Report)) error {
	r, err := do()
	if err != nil {
		return connectProblem(err)
	}
	if f.json {
		a.WriteJSON(r)
	} else {
		tell(a.Style(), a.Out, r)
	}
	return nil
}

// draftEntries drafts entries for the tools of one configuration, and writes them
// to it.
func draftEntries(ctx context.Context, a *cli.App, f connectOptions, at connect.Environment, config string) error {
	p := state.Workspace{Sandbox: "strict", Dir: at.Workspace}
	if p.Dir == "" {
		p.Dir = at.Project
	}
	p.Upstreams.Config, p.Upstreams.Confined = config, f.sandbox
	g, err := openServers(ctx, a, &p)
	if err != nil {
		return err
	}
	return writeDrafts(a, append(p.Upstreams.Drafts, g.Drafts(keptRoots(&p, nil)...)...), config, true, f.json)
}

// connectProblem returns the message for an error of connect.
func connectProblem(err error) error {
	var conflict *connect.ConflictError
	var file *connect.FileError
	switch {
	case errors.As(err, &conflict):
		return &cli.Problem{
			Code: cli.ExitUsage, What: "nothing was changed", Why: err.Error(),
			Fix: fmt.Sprintf("give one of them another name, or name another configuration than %s with --config FILE", conflict.Gateway),
		}
	case errors.As(err, &file):
		return &cli.Problem{Code: cli.ExitUsage, What: "nothing was changed", Why: err.Error(), Fix: "mend " + cli.Quote(file.Path) + ", then run the command again"}
	case errors.Is(err, connect.ErrNotConnected):
		return &cli.Problem{Code: cli.ExitUsage, What: err.Error(), Fix: "remit connect lists the clients that were found, and how they stand"}
	default:
		return &cli.Problem{Code: cli.ExitInternal, What: "not everything was written", Why: err.Error(), Fix: "run it again: it goes on from there; a backup of each file that was changed is kept"}
	}
}
