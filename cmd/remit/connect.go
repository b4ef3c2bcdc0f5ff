package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/internal/connect"
	"github.com/remit-dev/remit/revert"
)

// connectOptions holds the flags of connect and disconnect.
type connectOptions struct {
	project, config, workspace string
	preview, json, init        bool
	sandbox                    bool // draft sandboxes too
}

func (f connectOptions) mode() connect.Mode {
	if f.preview {
		return connect.Preview
	}
	return connect.Write
}

func (a *app) connectCommand() *cobra.Command {
	var f connectOptions
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Lead a client's MCP servers through the gateway",
		Long: "Takes the MCP servers out of a client's configuration, writes them into one of the gateway, and leaves one server in their\n" +
			"place, which is remit gateway. CLIENT is one of " + strings.Join(clientNames(), ", ") + "; without\n" +
			"one, the clients that were found are listed with their files. The user's files are edited, and those in the project.\n\n" +
			"Comments and order survive. A server that would do more or less behind the gateway than it does now stays, and is told\n" +
			"with the reason. A backup is kept; remit disconnect puts the files back byte for byte. Connecting again takes in what came\n" +
			"since. Quit the client first, if it writes its configuration itself.\n\n" +
			"Exit codes: 2 usage, or a file that cannot be read or edited; nothing is changed then.",
		Args: wantArgs(0, 1, "the name of one client, or none"),
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
			switch {
			case f.sandbox && !f.init:
				return usage("--sandbox drafts a sandbox, which is done with --init: give both")
			case len(args) == 0:
				return a.listClients(f, p)
			}
			if args[0] == "claude-desktop" && f.workspace == "" {
				return &problem{
					code: exitUsage, what: "Claude Desktop starts its servers in no folder of yours", why: "the gateway works in the folder in which it is started",
					fix: "name the one that calls may change: remit connect claude-desktop --workspace DIR",
				}
			}
			var configs []string
			err = a.connected(f, args[0], func(c connect.Client) (connect.Report, error) {
				r, err := c.Connect(p, f.mode())
				if f.init && !r.Preview {
					configs = r.Configs()
				}
				return r, err
			}, func(pt textStyle, w io.Writer, r connect.Report) { pt.connected(w, r, f.init) })
			for _, config := range configs {
				if err == nil {
					err = a.initialize(cmd.Context(), f, p, config)
				}
			}
			return err
		},
		ValidArgs: clientNames(),
	}
	cmd.Flags().BoolVar(&f.init, "init", false, "draft what is known of the tools too, as remit init --write does: reads run, and everything else asks")
	cmd.Flags().BoolVar(&f.sandbox, "sandbox", false, "with --init: draft a sandbox for each server by command that starts in one, as remit init --sandbox does")
	cmd.Flags().Var(folderFlag{&f.project}, "project", "project `DIR` whose files are edited beside the user's (default: the current folder)")
	cmd.Flags().StringVar(&f.config, "config", "", "`FILE` that the gateway is configured by (default: one for the user, and one for each project)")
	cmd.Flags().Var(folderFlag{&f.workspace}, "workspace", "workspace `DIR` of the gateway of the user's servers (default: where the client starts it)")
	keepFlags(cmd, &keep, "retention of the gateway: ")
	connectFlags(cmd, &f)
	return cmd
}

func (a *app) disconnectCommand() *cobra.Command {
	var f connectOptions
	cmd := &cobra.Command{
		Use: "disconnect CLIENT", Short: "Give a client its MCP servers back",
		Long: "Puts back every file that connecting the client changed, in whatever project: byte for byte where it is as connecting left it.\n" +
			"Where somebody changed it since, only what connecting put in is taken out, the change stays, and the backup is named.\n" +
			"Servers go out of the gateway's configuration if they are as they came and no other client's.\n\n" +
			"Exit codes: 2 usage, a client that is not connected, or a file that cannot be read or edited; nothing is changed then.",
		Args: wantArgs(1, 1, "the name of one client"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := f.place(a)
			if err != nil {
				return err
			}
			return a.connected(f, args[0], func(c connect.Client) (connect.Report, error) { return c.Disconnect(p, f.mode()) }, textStyle.disconnected)
		},
		ValidArgs: clientNames(),
	}
	connectFlags(cmd, &f)
	return cmd
}

func connectFlags(cmd *cobra.Command, f *connectOptions) {
	cmd.Flags().BoolVar(&f.preview, "preview", false, "show the difference and write nothing; values of env and headers are hidden")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one JSON object for each client")
	cmd.ValidArgsFunction = cobra.FixedCompletions(clientNames(), cobra.ShellCompDirectiveNoFileComp)
}

func clientNames() (names []string) {
	for _, c := range connect.Clients() {
		names = append(names, c.Name())
	}
	return names
}

// place returns the environment of this user's client files.
func (f connectOptions) place(a *app) (p connect.Environment, err error) {
	home := a.env("HOME")
	if runtime.GOOS == "windows" {
		home = a.env("USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return p, &problem{code: exitUsage, what: "there is no home folder to look for clients in", fix: "set HOME to an absolute path"}
	}
	state, err := stateHome(a.env)
	if err != nil {
		return p, err
	}
	p = connect.Environment{OS: runtime.GOOS, Home: home, State: filepath.Join(state, "remit", "connect"), Env: a.env}
	if p.Command, err = os.Executable(); err != nil {
		return p, err
	}
	project := f.project
	if project == "" {
		project = "."
	}
	if p.Project, err = realFolder(project); err != nil {
		return p, err
	}
	if f.workspace != "" {
		if p.Workspace, err = realFolder(f.workspace); err != nil {
			return p, err
		}
	}
	if f.config != "" {
		p.Gateway, err = filepath.Abs(f.config)
	}
	return p, err
}

// connected connects or disconnects a client, and reports the result.
func (a *app) connected(f connectOptions, name string, do func(connect.Client) (connect.Report, error), tell func(textStyle, io.Writer, connect.Report)) error {
	c, err := connect.ClientByName(name)
	if err != nil {
		return usage(err.Error())
	}
	r, err := do(c)
	if err != nil {
		return connectProblem(err)
	}
	if f.json {
		a.writeJSON(r)
	} else {
		tell(a.paint(), a.out, r)
	}
	return nil
}

// initialize drafts entries for the tools of one configuration, and writes them
// to it.
func (a *app) initialize(ctx context.Context, f connectOptions, at connect.Environment, config string) error {
	p := workspaceState{sandbox: "strict", workspace: at.Workspace}
	if p.workspace == "" {
		p.workspace = at.Project
	}
	p.upstreams.config, p.upstreams.confined = config, f.sandbox
	g, err := a.knownServers(ctx, &p)
	if err != nil {
		return err
	}
	return a.draft(append(p.upstreams.drafts, g.Drafts(keptRoots(&p, nil)...)...), config, true, f.json)
}

// connectProblem returns the message for an error of connect.
func connectProblem(err error) error {
	var conflict *connect.ConflictError
	var file *connect.FileError
	switch {
	case errors.As(err, &conflict):
		return &problem{
			code: exitUsage, what: "nothing was changed", why: err.Error(),
			fix: fmt.Sprintf("give one of them another name, or name another configuration than %s with --config FILE", conflict.Gateway),
		}
	case errors.As(err, &file):
		return &problem{code: exitUsage, what: "nothing was changed", why: err.Error()}
	case errors.Is(err, connect.ErrNotConnected):
		return &problem{code: exitUsage, what: err.Error(), fix: "remit connect lists the clients that were found, and how they stand"}
	default:
		return &problem{code: exitInternal, what: "not everything was written", why: err.Error(), fix: "run it again: it goes on from there; a backup of each file that was changed is kept"}
	}
}

// listClients reports the state of each client.
func (a *app) listClients(f connectOptions, p connect.Environment) error {
	found := false
	for _, c := range connect.Clients() {
		r, err := c.Status(p)
		if err != nil {
			return connectProblem(err)
		}
		if f.json {
			a.writeJSON(r)
			continue
		}
		r.Files = slices.DeleteFunc(r.Files, func(f connect.File) bool { return f.State == connect.StateAbsent })
		if len(r.Files) > 0 {
			found = true
			_, _ = fmt.Fprintf(a.out, "%s  %s\n", a.paint().bold(r.Client), r.Title)
			a.paint().clientFiles(a.out, r)
		}
	}
	if !found && !f.json {
		_, _ = fmt.Fprintf(a.out, "no configuration of a client was found in %s and %s\n", printable(p.Home), printable(p.Project))
	}
	return nil
}

// clientFiles lists files with their states and servers.
func (p textStyle) clientFiles(w io.Writer, r connect.Report) {
	for _, f := range r.Files {
		state := string(f.State)
		switch f.State {
		case connect.StateRouted:
			state = p.good(state)
		case connect.StateUnreadable:
			state = p.bad(state)
		case connect.StateDirect, connect.StateMixed:
			state = p.doubt(state)
		case connect.StateAbsent, connect.StateEmpty:
			state = p.faint(state)
		}
		_, _ = fmt.Fprintf(w, "  %s  %s\n", state, printable(f.Path))
		if f.Error != "" {
			_, _ = fmt.Fprintf(w, "    %s\n", p.bad(printable(f.Error)))
		}
		p.servers(w, f)
	}
}

// servers lists the servers of a file with their places and notes.
func (p textStyle) servers(w io.Writer, f connect.File) {
	for _, s := range f.Servers {
		words := "started by the client"
		switch {
		case s.Gateway != "":
			words = "behind " + s.Gateway
			if s.GatewayName != "" {
				words += ", as " + s.GatewayName
			}
		case s.Why != "":
			words = "stays: " + s.Why
		}
		name := s.Name
		if s.Scope == connect.Local {
			name += " (" + s.Project + ")"
		}
		_, _ = fmt.Fprintf(w, "    %-12s %s\n", printable(name), p.faint(printable(words)))
	}
	for _, note := range f.Notes {
		_, _ = fmt.Fprintf(w, "    %s\n", p.doubt(printable(note)))
	}
}

// connected reports what connecting did.
func (p textStyle) connected(w io.Writer, r connect.Report, drafts bool) {
	p.clientFiles(w, r)
	if !r.Changed() {
		_, _ = fmt.Fprintf(w, "nothing to change in the configuration of %s\n", r.Title)
		return
	}
	p.written(w, r)
	if r.Preview {
		return
	}
	for _, g := range r.Gateways {
		if len(g.Added) > 0 && !drafts {
			_, _ = fmt.Fprintf(w, "  %s   remit init --config %s --write: until an entry says what their tools do, calls of them are denied\n", p.faint("next"), quoted(g.Path))
		}
	}
	_, _ = fmt.Fprintf(w, "%s restart %s; remit disconnect %s takes it back\n", p.good("✓"), r.Title, r.Client)
}

// disconnected reports what disconnecting did.
func (p textStyle) disconnected(w io.Writer, r connect.Report) {
	for _, f := range r.Files {
		words := p.good("byte for byte as before")
		if !f.Identical {
			words = p.doubt("not as before")
		}
		_, _ = fmt.Fprintf(w, "  %s  %s\n", printable(f.Path), words)
		p.servers(w, connect.File{Notes: f.Notes})
	}
	p.written(w, r)
	if !r.Preview {
		_, _ = fmt.Fprintf(w, "%s restart %s\n", p.good("✓"), r.Title)
	}
}

// written reports backups and gateway configurations, and shows a preview.
func (p textStyle) written(w io.Writer, r connect.Report) {
	for _, f := range r.Files {
		if f.Backup != "" && !r.Preview {
			_, _ = fmt.Fprintf(w, "  %s %s\n", p.faint("backup"), printable(f.Backup))
		}
	}
	for _, g := range r.Gateways {
		for i, names := range [][]string{g.Added, g.Removed, g.Kept} {
			if len(names) > 0 {
				what := []string{"added", "removed", "kept"}[i]
				_, _ = fmt.Fprintf(w, "  %s  %s: %s\n", printable(g.Path), p.faint(what), printable(strings.Join(names, ", ")))
			}
		}
	}
	for _, f := range r.Files {
		p.patch(w, f.Diff)
	}
	for _, g := range r.Gateways {
		p.patch(w, g.Diff)
	}
}
