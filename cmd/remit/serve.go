package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

func serveCommand(a *cli.App) *cobra.Command {
	var f serveFlags
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "serve [--stdio | --http ADDR] [flags]", Short: "Serve the tools over MCP, with undo",
		Long: "Serves the tools of remit to MCP clients, in all revisions of the protocol. A call that names no transaction is one by\n" +
			"itself, and can be taken back by the id in its result, by the tool txn_revert, or by remit revert.\n\n" +
			"--stdio, the default, is for one client, which starts the command. --http serves any number, each in the session that its\n" +
			"token proves: one is made at the first start and kept in the state folder, which the command names; remit token\n" +
			"makes others. It listens on loopback; another address needs --expose and --host.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.AsSet = cmd.Flags().Changed("as")
			if cmd.Flags().Changed("keep") || cmd.Flags().Changed("keep-last") {
				f.Retain = &keep
			}
			if err := f.checkServe(cmd.Flags().Changed); err != nil {
				return err
			}
			return runServe(cmd.Context(), a, &f)
		},
	}
	addSessionFlags(a, cmd, &f.Flags)
	flags := cmd.Flags()
	flags.BoolVar(&f.Upstreams.Strict, "strict-pins", false, "with --config: keep what servers declare at their first start in quarantine too")
	flags.BoolVar(&f.stdio, "stdio", false, "speak over standard input and output, with one client (the default)")
	flags.StringVar(&f.http, "http", "", "listen for HTTP on `ADDR`, such as 127.0.0.1:8321; port 0 is any that is free. The path is /mcp")
	flags.StringVar(&f.SessionFile, "session", "", "with --stdio: `FILE` that keeps a secret by which the next start goes on in the same session; made where it is not there")
	flags.StringVar(&f.OnAsk, "on-ask", "elicit", "what happens when the policy asks: elicit asks the person at the client, where the client can, and else waits; wait for remit approve; deny")
	flags.StringVar(&f.Notify, "notify", "", "shell command `CMD` that is run for each call that waits for approval, with what it is in REMIT_CALL, REMIT_TOOL and so on, and as JSON on standard input; ended after 10 seconds")
	flags.StringArrayVar(&f.hosts, "host", nil, "with --http: another `NAME` that requests may be addressed to, beside those of loopback")
	flags.StringArrayVar(&f.origins, "origin", nil, "with --http: the `ORIGIN` of a web page that may call, such as https://example.com")
	flags.BoolVar(&f.expose, "expose", false, "listen beyond this machine: whoever reaches ADDR and has a token acts as its session, and reads along where nothing before it encrypts")
	flags.BoolVar(&f.noTransactions, "no-transactions", false, "do not offer the tools txn_begin, txn_commit, txn_preview, txn_revert and txn_status")
	taskFlags(cmd, &f.tasks)
	cli.AddRetentionFlags(cmd, &keep, "have the server drop old records beside its traffic (default: nothing is dropped): ")
	flags.BoolVar(&f.JSON, "json", false, "with --http: say where it listens as one JSON object")
	return cmd
}

func runServe(ctx context.Context, a *cli.App, f *serveFlags) (err error) {
	limitMemory(a)
	how := mcp.ApproveOutOfBand // also where nothing is asked: calls may wait that were asked about before
	if f.OnAsk == "elicit" {
		how = mcp.ApproveAtClient
		f.OnAsk = "wait" // in the runtime it is: the question is on the journal, whoever answers
	}
	f.Recovers = true
	if how, err = approvalMode(a, f, how); err != nil {
		return err
	}
	rt, err := startup.Open(ctx, a, &f.Flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	key, err := keptSecret(f.mcpFile("key"), newKey)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o := mcp.Options{
		Version: cli.ReadVersion().Version, OnAsk: how, Key: []byte(key), Log: log, NoTransactions: f.noTransactions, Instructions: f.instructions(),
	}
	f.tasks.set(&o)
	if rt.Gateway != nil {
		o.Mirror = rt.Gateway
	}
	srv, err := mcp.New(rt.Runtime, o)
	if err != nil {
		return err
	}
	if rt.Gateway != nil {
		rt.Gateway.SetServer(srv)
		rt.Gateway.Start() // no earlier: what servers declare is for the runtime and its clients
	}
	if f.http != "" {
		err = serveHTTP(ctx, a, f, rt.Runtime, srv)
	} else {
		err = serveOne(ctx, a, f, rt.Runtime, srv)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it was told to end
	}
	return err
}

// approvalMode keeps a server from asking its client where approvals need a passphrase, which a client cannot prove.
func approvalMode(a *cli.App, f *serveFlags, how mcp.ApprovalMode) (mcp.ApprovalMode, error) {
	at := f.Workspace
	if err := at.Find(a); err != nil {
		return how, err
	}
	s, err := approval.ReadSettings(at.StateDir)
	if s.Passphrase != nil {
		how = mcp.ApproveOutOfBand
	}
	return how, err
}

// instructions tell a model what is different here.
func (f *serveFlags) instructions() string {
	text := "Calls of these tools are asked for by a policy, recorded, and can be taken back."
	if f.noTransactions {
		return text
	}
	return text + " To try something out, begin a transaction with txn_begin and current true, and end it with txn_commit or txn_revert." +
		" txn_revert also takes back a single call, by its id, after it is done. A call that was denied is not allowed when it is repeated."
}

// mcpFile is a file beside the journal.
func (f *serveFlags) mcpFile(name string) string { return filepath.Join(f.StateDir, "mcp", name) }

// serveOne serves the client that started the command.
func serveOne(ctx context.Context, a *cli.App, f *serveFlags, rt *agent.Runtime, srv *mcp.Server) error {
	s, err := openSession(ctx, a, rt, &f.Flags, f.SessionFile)
	if err != nil {
		return err
	}
	return srv.RunIO(ctx, io.NopCloser(a.In), nopWriteCloser{a.Out}, s)
}

// nopWriteCloser is a stream that whoever opened it closes.
type nopWriteCloser struct{ io.Writer }

// Close does nothing.
func (nopWriteCloser) Close() error { return nil }

// serveHTTP serves whoever has a token.
func serveHTTP(ctx context.Context, a *cli.App, f *serveFlags, rt *agent.Runtime, srv *mcp.Server) error {
	file := f.mcpFile("token")
	if _, err := openSession(ctx, a, rt, &f.Flags, file); err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.http)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("nothing can listen on %q", f.http), Why: cli.PlainError(err), Fix: "name another address, or port 0 for any that is free"}
	}
	where := listening{URL: "http://" + l.Addr().String() + "/mcp", TokenFile: file}
	if f.JSON {
		a.WriteJSON(where)
	} else {
		_, _ = fmt.Fprintf(a.Out, "listening on %s\nclients send the token in %s as Authorization: Bearer; %s makes one for another session\n", where.URL, cli.Quote(where.TokenFile), f.Hint("token"))
	}
	return srv.Serve(ctx, l, mcp.HTTPOptions{Hosts: f.hosts, Origins: f.origins})
}

// listening says where a server is.
type listening struct {
	URL       string `json:"url"`
	TokenFile string `json:"token_file"`
}

// serveFlags is what remit serve is told, beside what a run is.
type serveFlags struct {
	startup.Flags
	stdio          bool
	http           string
	hosts, origins []string
	expose         bool
	noTransactions bool
	tasks          taskLimits
}

// addSessionFlags are the flags of whatever opens a session for calls to come.
func addSessionFlags(a *cli.App, cmd *cobra.Command, f *startup.Flags) {
	state.AddFlags(cmd, &f.Workspace)
	state.AddDatabaseFlag(cmd, &f.Workspace)
	state.AddServiceFlags(cmd, &f.Services)
	state.AddDeclarationFlags(cmd, &f.Declared)
	startup.AddSandboxFlag(cmd, &f.Workspace)
	startup.AddLimitFlags(cmd, &f.Limits)
	upstream.AddFlag(cmd, &f.Upstreams)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Roots, "root", nil, "another folder that calls may be granted parts of, as `NAME=DIR`")
	flags.StringArrayVar(&f.Policies, "policy", nil, "policy `PATH`, a .rego file, a folder of them or builtin:PACK (default: the workspace policy)")
	flags.StringVar(&f.As, "as", "agent", "`ID` of who asks")
	flags.StringArrayVar(&f.Roles, "role", nil, "role `R` of who asks")
	flags.DurationVar(&f.ClaimTimeout, "claim-wait", 0, "how long a call waits for a file that another open transaction holds, such as 30s (default: it fails at once and names the holder)")
	f.AtEnd = "commit"
}

func (f *serveFlags) checkServe(changed func(string) bool) error {
	switch {
	case f.stdio && changed("http"):
		return cli.UsageProblem("--stdio and --http are two ways to be reached: use one of them")
	case changed("http") && f.http == "":
		return cli.UsageProblem("--http names no address; is a variable not set?")
	case f.http != "" && f.SessionFile != "":
		return cli.UsageProblem("--session is of --stdio: over HTTP each request proves its own session")
	case f.SessionFile == "" && changed("session"):
		return cli.UsageProblem("--session names no file; is a variable not set?")
	}
	for _, name := range []string{"host", "origin", "expose", "json"} {
		if f.http == "" && changed(name) {
			return cli.UsageProblem("--" + name + " is of --http")
		}
	}
	if err := f.tasks.check(changed); err != nil {
		return err
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

// checkAddress keeps what listens beyond the machine from being a slip.
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
			Why: "whoever reaches it and has a token acts as its session; nothing is encrypted here", Fix: "listen on 127.0.0.1, or say --expose, behind something that encrypts",
		}
	case len(f.hosts) == 0:
		return &cli.Problem{
			Code: cli.ExitUsage, What: "nobody could call: requests are answered by names that are given", Why: "a web page could have a name of its own resolve to this machine",
			Fix: "name what clients call this server, with --host",
		}
	}
	return nil
}

// openSession opens the session whose token a file holds, and makes both where the file is not there; a session without a
// file ends with the process.
func openSession(ctx context.Context, a *cli.App, rt *agent.Runtime, f *startup.Flags, file string) (*agent.Session, error) {
	if file != "" {
		if _, err := os.Lstat(file); err == nil {
			again := *f
			again.SessionFile, again.Roles = file, nil
			s, err := startup.OpenSession(ctx, a, rt, &again)
			if err == nil && len(f.Roles) > 0 && !slices.Equal(slices.Sorted(slices.Values(f.Roles)), slices.Sorted(slices.Values(s.Principal().Roles))) {
				return nil, cli.UsageProblem("--role is of a new session; one that goes on has the roles that it began with")
			}
			return s, err
		}
	}
	s, err := newMCPSession(ctx, rt, f)
	if err != nil || file == "" {
		return s, err
	}
	if _, err := keptSecret(file, func() string { return s.Token() }); err != nil {
		return nil, err
	}
	return s, nil
}

func newMCPSession(ctx context.Context, rt *agent.Runtime, f *startup.Flags, bounds ...agent.SessionOption) (*agent.Session, error) {
	opts := append(bounds, agent.ClaimTimeout(f.ClaimTimeout), agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	return rt.Session(ctx, perm.Principal{ID: f.As, Roles: f.Roles}, opts...)
}

// keptSecret reads a file that only its owner can read, and makes it where it is not there.
func keptSecret(file string, secret func() string) (string, error) {
	text, err := startup.ReadToken(file)
	if errors.Is(err, os.ErrNotExist) {
		text = secret()
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = startup.WriteToken(file, text)
		}
	}
	if err != nil {
		return "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the file %q cannot be used", file), Why: strings.TrimPrefix(cli.PlainError(err), "open ")}
	}
	return text, nil
}

func newKey() string { return fmt.Sprintf("%x", cli.RandomBytes(32)) }

// limitMemory lets garbage gather: a server makes a lot of it with each call and keeps next to nothing, so that to look for what is kept
// is most of what collecting costs. How much the process holds is bounded instead: from modest on it is collected eagerly, and more is
// taken where more is in use. GOGC and GOMEMLIMIT say otherwise.
func limitMemory(a *cli.App) {
	if a.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(modest)
	}
	if a.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

const modest = 320 << 20
