package serve

import (
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
)

// serveFlags holds the flags of remit serve.
type serveFlags struct {
	startup.Flags
	http           string
	hosts, origins []string
	expose         bool
	noTransactions bool
}

// AddSessionFlags adds the flags that decide what a new session holds.
func AddSessionFlags(a *cli.App, cmd *cobra.Command, f *startup.Flags) {
	state.AddFlags(cmd, &f.Workspace)
	state.AddDatabaseFlag(cmd, &f.Workspace)
	state.AddServiceFlags(cmd, &f.Services)
	state.AddDeclarationFlags(cmd, &f.Declared)
	upstream.AddFlag(cmd, &f.Upstreams)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Roots, "root", nil, "another root for calls, as `NAME=DIR`")
	flags.StringVar(&f.As, "principal", "agent", "`ID` of the principal: the agent or person that makes the calls")
	flags.StringArrayVar(&f.Roles, "role", nil, "role `R` of the principal")
	startup.AddDataFlags(cmd, &f.Data)
	f.AtEnd = "commit"
}

// addCallFlags adds the flags that decide how the calls of a server run.
func addCallFlags(cmd *cobra.Command, f *startup.Flags) {
	startup.AddSandboxFlag(cmd, &f.Workspace)
	startup.AddLimitFlags(cmd, &f.Limits)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Policies, "policy", nil, "policy `PATH`: a .rego file, a folder of such files, or builtin:PACK (default: the workspace policy)")
	flags.DurationVar(&f.ClaimTimeout, "claim-timeout", 0, "`TIME` for which a call waits for a file that another open transaction claims, such as 30s (default: the call fails immediately and names that transaction)")
}

func (f *serveFlags) checkServe(changed func(string) bool) error {
	switch {
	case changed("http") && f.http == "":
		return cli.UsageProblem("--http names no address; is a variable not set?")
	case f.http != "" && f.SessionFile != "":
		return cli.UsageProblem("--session cannot be combined with --http: over HTTP each request proves its own session")
	case f.SessionFile == "" && changed("session"):
		return cli.UsageProblem("--session names no file; is a variable not set?")
	}
	for _, name := range []string{"host", "origin", "allow-remote", "json"} {
		if f.http == "" && changed(name) {
			return cli.UsageProblem("--" + name + " is of --http")
		}
	}
	switch f.OnAsk {
	case "elicit", "wait", "deny":
	default:
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--on-ask %q is not one of the ways to answer", f.OnAsk), Fix: "valid are elicit, wait, deny"}
	}
	for _, origin := range f.origins {
		if u, err := url.Parse(origin); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Path != "" {
			return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--origin %q is no origin", origin), Fix: "write it as browsers do, such as https://example.com"}
		}
	}
	if f.http != "" {
		if err := f.checkAddress(); err != nil {
			return err
		}
	}
	return f.Check()
}

// checkAddress rejects an address that other machines reach, unless --allow-remote
// and --host are set.
func (f *serveFlags) checkAddress() error {
	name, _, err := net.SplitHostPort(f.http)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--http %q is no address", f.http), Why: cli.PlainError(err), Fix: "write HOST:PORT, such as 127.0.0.1:8321"}
	}
	ip := net.ParseIP(name)
	if name == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	switch {
	case !f.expose:
		return &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("--http %q can be reached from other machines", f.http),
			Why: "a client that reaches it with a token acts as the session of the token; nothing is encrypted here", Fix: "listen on 127.0.0.1, or say --allow-remote, behind something that encrypts",
		}
	case len(f.hosts) == 0:
		return &cli.Problem{
			Code: cli.ExitUsage, What: "no client could call: the server answers only to the host names that you name", Why: "a web page could have a name of its own resolve to this machine",
			Fix: "name what clients call this server, with --host",
		}
	}
	return nil
}
