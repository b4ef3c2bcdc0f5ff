package console

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/console"
)

type flags struct {
	state.Workspace
	address string
	numeric bool
	noOpen  bool
	json    bool

	policies []string
	verbs    Verbs
}

// Verbs are what other verbs do for the pages.
type Verbs struct {
	// Explain explains the decision about a call, as remit policy explain does.
	Explain func(ctx context.Context, a *cli.App, at *state.Workspace, policies []string, call string) (string, error)
	// Diagnose checks what remit doctor checks.
	Diagnose func(ctx context.Context, a *cli.App, f *startup.Flags, found func(where, name, is, what, fix string)) error
}

// Command returns remit console.
func Command(a *cli.App, verbs Verbs) *cobra.Command {
	f := flags{verbs: verbs}
	cmd := &cobra.Command{
		Use: "console", Short: "Show and steer what agents do, in a browser",
		Long: "Serves pages on loopback, and opens them in your browser: what runs and waits, the timeline of each session, each call\n" +
			"with the rule that decided it, differences, and what a revert would do. You answer waiting calls and revert there. The\n" +
			"address counts once, within ten minutes; press Enter for another one. The command serves until you interrupt it.\n\n" +
			"The address has a random name below localhost, because a browser sends a cookie to each port of a host. If your browser\n" +
			"does not find that name, use --numeric.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, &f) },
	}
	state.AddFlags(cmd, &f.Workspace)
	state.AddRootFlag(cmd, &f.Workspace)
	state.AddDatabaseFlag(cmd, &f.Workspace)
	cmd.Flags().StringArrayVar(&f.policies, "policy", nil, "policy `PATH` that explains decisions: a .rego file, a folder of such files, or builtin:PACK (default: the workspace policy)")
	cmd.Flags().StringVar(&f.address, "listen", "127.0.0.1:0", "loopback `ADDR` to listen on; port 0 selects a free port")
	cmd.Flags().BoolVar(&f.numeric, "numeric", false, "use the address itself in place of a random name below localhost")
	cmd.Flags().BoolVar(&f.noOpen, "no-open", false, "print the address, and open no browser")
	cmd.Flags().BoolVar(&f.json, "json", false, "write the address as one JSON object")
	return cmd
}

// addressRecord is the JSON form of an address.
type addressRecord struct {
	URL string `json:"url"`
}

func run(ctx context.Context, a *cli.App, f *flags) error {
	who, err := a.Person()
	if err != nil {
		return err
	}
	f.MustExist = true
	return startup.WithRuntime(ctx, a, &f.Workspace, func(rt *agent.Runtime) error {
		l, host, err := f.listen(ctx)
		if err != nil {
			return err
		}
		c, err := f.console(a, rt, host, who)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		if err := f.announce(a, c); err != nil {
			return errors.Join(err, l.Close())
		}
		go f.again(a, c)
		defer startup.Asked{App: a, Place: f.Workspace, Journal: rt.Journal()}.Serve(ctx)()
		return c.Serve(ctx, l)
	})
}

// listen returns a listener on loopback, and the host in the address of the
// pages.
func (f *flags) listen(ctx context.Context) (l net.Listener, host string, err error) {
	name, _, err := net.SplitHostPort(f.address)
	if err != nil || !isLoopback(name) {
		return nil, "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--listen %q: must be an address of loopback with a port, such as 127.0.0.1:8321", f.address)}
	}
	var how net.ListenConfig
	if l, err = how.Listen(ctx, "tcp", f.address); err != nil {
		return nil, "", &cli.Problem{Code: cli.ExitUsage, What: "cannot listen on " + f.address, Why: err.Error()}
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	if f.numeric {
		return l, net.JoinHostPort(name, port), nil
	}
	return l, "remit-" + hex.EncodeToString(cli.RandomBytes(8)) + ".localhost:" + port, nil
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return ip != nil && ip.To4() != nil && ip.IsLoopback()
}

func (f *flags) console(a *cli.App, rt *agent.Runtime, host, who string) (*console.Console, error) {
	moved := map[string]string{}
	for _, r := range f.Moved {
		name, dir, err := state.ParseRoot(r)
		if err != nil {
			return nil, err
		}
		moved[name] = dir
	}
	title := ""
	if dir, err := state.RealFolder(f.Folder()); err == nil {
		title = dir
	}
	return console.New(console.Options{
		Runtime: rt, Host: host, By: who, Title: title, Folders: moved, Hint: f.Hint, Now: a.Host.Now,
		CheckApproval: func(ctx context.Context, id string, askers []json.RawMessage) error {
			rules, err := approval.RulesFor(ctx, &f.Workspace, rt.Journal(), id)
			if err != nil {
				return err
			}
			return approval.CheckPage(a, &f.Workspace, rules, id, askers)
		},
		Explain: func(ctx context.Context, call string) (string, error) {
			return f.verbs.Explain(ctx, a, &f.Workspace, f.policies, call)
		},
		Diagnose: func(ctx context.Context) ([]console.Check, error) { return f.diagnose(ctx, a, rt) },
		EndPrompts: func(ctx context.Context) error {
			_, err := startup.EndPrompts(ctx, a, &f.Workspace, rt.Journal())
			return err
		},
	})
}

// announce prints an address, and opens it in the browser.
func (f *flags) announce(a *cli.App, c *console.Console) error {
	page := c.EntryURL()
	if f.json {
		a.WriteJSON(addressRecord{page})
		return nil
	}
	_, err := fmt.Fprintln(a.Out, page)
	if err == nil && !f.noOpen && a.OpenPage != nil {
		if err := a.OpenPage(page); err != nil {
			_, _ = fmt.Fprintln(a.Err, "no browser was opened: "+cli.Printable(err.Error())+"; open the address yourself")
		}
	}
	return err
}

// again prints another address at each line of the terminal. It ends with the
// input.
func (f *flags) again(a *cli.App, c *console.Console) {
	if a.In == nil || a.Caller == nil || a.Caller().Terminal != nil {
		return // no person types
	}
	for lines := bufio.NewScanner(a.In); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "" {
			_, _ = fmt.Fprintln(a.Out, c.EntryURL())
		}
	}
}
