package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/internal/login"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// loginOutput is the JSON form of a login.
type loginOutput struct {
	Server   string     `json:"server"`
	URL      string     `json:"url"`
	Resource string     `json:"resource"`
	Scopes   []string   `json:"scopes"`
	Expires  *time.Time `json:"expires,omitempty"`
	Renews   bool       `json:"renews"`
}

// LoginCommand returns remit gateway login.
func LoginCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	asJSON, noBrowser, patience := false, false, 5*time.Minute
	cmd := &cobra.Command{
		Use: "login SERVER --config FILE", Short: "Log in at a remote server that uses OAuth",
		Long: "Opens the login page of the server's authorization server in a browser, or prints its address, and waits for the\n" +
			"browser to return to this machine. The command stores the tokens in the state folder, readable only by its owner.\n" +
			"remit sends them only to the URL of the server. A running gateway uses the login and renews it.\n\n" +
			"Exit codes: 3 the login was refused; 5 it did not complete.",
		Args: cli.WantArgs(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, store, err := findLogin(a, &p, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), patience, fmt.Errorf("the browser did not return within %s", patience))
			defer cancel()
			k, err := store.Login(ctx, server, func(page string) {
				_, _ = fmt.Fprintf(a.Err, "To log in at %s, open this page in a browser on this machine:\n%s\n", server.Name, cli.Printable(page))
				if a.OpenPage != nil && a.ErrTerminal && !noBrowser {
					_ = a.OpenPage(page) // standard error has the address of the page
				}
			})
			switch {
			case errors.Is(err, login.ErrRefused):
				return &cli.Problem{Code: cli.ExitDenied, What: "not logged in at " + server.Name, Why: err.Error()}
			case err != nil:
				return &cli.Problem{Code: cli.ExitFailed, What: "not logged in at " + server.Name, Why: err.Error()}
			}
			return writeLogin(a, k, asJSON)
		},
	}
	state.AddFlags(cmd, &p)
	upstream.AddFlag(cmd, &p.Upstreams)
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address of the login page")
	cmd.Flags().DurationVar(&patience, "timeout", patience, "`TIME` to wait for the browser")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// findLogin returns a server of the configuration and the store of its login.
func findLogin(a *cli.App, p *state.Workspace, name string) (config.Server, login.Store, error) {
	if p.Upstreams.Config == "" {
		return config.Server{}, login.Store{}, cli.UsageProblem("--config names the file that lists the servers")
	}
	c, path, err := upstream.ReadServers(a, &p.Upstreams)
	if err == nil {
		err = p.Find(a)
	}
	if err != nil {
		return config.Server{}, login.Store{}, err
	}
	var names []string
	for _, s := range c.Servers {
		if s.Name == name {
			return s, upstream.Logins(p, path), nil
		}
		names = append(names, s.Name)
	}
	e := cli.UsageProblem(fmt.Sprintf("there is no server %q in %s", name, p.Upstreams.Config))
	if near := suggest.Name(name, names); near != "" {
		e.Fix = "did you mean " + near + "?"
	} else if len(names) > 0 {
		e.Fix = "there are " + strings.Join(names, ", ")
	}
	return config.Server{}, login.Store{}, e
}

func writeLogin(a *cli.App, k login.Info, asJSON bool) error {
	if asJSON {
		told := loginOutput{Server: k.Server, URL: k.URL, Resource: k.Resource, Scopes: slices.Concat([]string{}, k.Scopes), Renews: k.Renews}
		if !k.Expires.IsZero() {
			told.Expires = &k.Expires
		}
		a.WriteJSON(told)
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "logged in at %s, %s\n", cli.Printable(k.Server), upstream.LoginWords(k))
	return err
}

// LogoutCommand returns remit gateway logout.
func LogoutCommand(a *cli.App) *cobra.Command {
	var p state.Workspace
	asJSON := false
	cmd := &cobra.Command{
		Use: "logout SERVER", Short: "Forget the login at a server",
		Long: "Removes the login at a server from the state folder. The command does not tell the authorization server: if another\n" +
			"person can have read the token, revoke it there too.",
		Args: cli.WantArgs(1, 1, "the name of a server"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := p.Find(a); err != nil {
				return err
			}
			was, err := upstream.Logins(&p, "").Logout(args[0])
			if err != nil {
				return &cli.Problem{Code: cli.ExitInternal, What: "the login at " + cli.Printable(args[0]) + " is not forgotten", Why: cli.PlainError(err)}
			}
			if asJSON {
				a.WriteJSON(struct {
					Server string `json:"server"`
					Was    bool   `json:"was"`
				}{args[0], was})
				return nil
			}
			said := "there was no login at "
			if was {
				said = "logged out at "
			}
			_, err = fmt.Fprintln(a.Out, said+cli.Printable(args[0]))
			return err
		},
	}
	state.AddFlags(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}
