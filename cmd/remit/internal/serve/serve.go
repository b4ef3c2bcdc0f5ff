package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/version"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// Command returns remit serve.
func Command(a *cli.App) *cobra.Command {
	var f serveFlags
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "serve [--http ADDR] [flags]", Short: "Serve the tools over MCP, with undo",
		Long: "Serves the tools of remit to MCP clients, in all revisions of the protocol. A call that names no transaction is its\n" +
			"own transaction. You can revert it with the ID in its result, with the tool txn_revert, or with remit revert.\n\n" +
			"Without --http, the command serves the client that starts it. With --http, it serves several clients, each in the session\n" +
			"of its token. The command creates a token at the first start, stores it in the state folder and prints its place;\n" +
			"remit token creates others. The server listens on loopback; another address needs --allow-remote and --host.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.AsSet = cmd.Flags().Changed("principal")
			if cmd.Flags().Changed("keep") || cmd.Flags().Changed("keep-last") {
				f.Retain = &keep
			}
			if err := f.checkServe(cmd.Flags().Changed); err != nil {
				return err
			}
			return runServe(cmd.Context(), a, &f)
		},
	}
	AddSessionFlags(a, cmd, &f.Flags)
	addCallFlags(cmd, &f.Flags)
	flags := cmd.Flags()
	flags.BoolVar(&f.Upstreams.Strict, "quarantine-new", false, "with --config: also quarantine the definitions of a server's first start")
	flags.StringVar(&f.http, "http", "", "listen for HTTP on `ADDR`, such as 127.0.0.1:8321, with the path /mcp; port 0 selects a free port")
	flags.StringVar(&f.SessionFile, "session", "", "without --http: `FILE` with the secret of a session, which each start continues; remit creates a missing file, for a new session")
	flags.StringVar(&f.OnAsk, "on-ask", "elicit", "`MODE` for calls that need approval: elicit asks the user through the client, or waits if the client cannot ask; wait lets them wait for remit approve; deny denies them")
	flags.StringVar(&f.Notify, "notify", "", "shell command `CMD` that remit runs for each call that waits for approval: docs/guides/approval.md")
	flags.StringArrayVar(&f.hosts, "host", nil, "with --http: another host `NAME` that requests can have, besides the names of loopback")
	flags.StringArrayVar(&f.origins, "origin", nil, "with --http: `ORIGIN` of a web page that can call the server, such as https://example.com")
	flags.BoolVar(&f.expose, "allow-remote", false, "with --http: accept an address that other machines reach; remit does not encrypt, so put a proxy with TLS before it")
	flags.BoolVar(&f.noTransactions, "no-transactions", false, "do not offer the tools txn_begin, txn_commit, txn_preview, txn_revert and txn_status")
	cli.AddRetentionFlags(cmd, &keep, "with --keep or --keep-last, the server prunes old transactions while it runs: ")
	flags.BoolVar(&f.JSON, "json", false, "with --http: write the address as one JSON object")
	return cmd
}

func runServe(ctx context.Context, a *cli.App, f *serveFlags) (err error) {
	limitMemory(a)
	how := mcp.ApproveOutOfBand // calls of earlier sessions can be pending
	if f.OnAsk == "elicit" {
		how = mcp.ApproveAtClient
		f.OnAsk = "wait" // the runtime stores the approval request, for any approver
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
	told := ctx // to end
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer journal.OnFailure(rt.Journal(), cancel)()
	key, err := secretFile(f.mcpFile("key"), newKey)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o := mcp.Options{
		Version: version.Read().Version, OnAsk: how, Key: []byte(key), Log: log, NoTransactions: f.noTransactions, Instructions: f.instructions(),
	}
	if rt.Gateway != nil {
		o.Mirror = rt.Gateway
	}
	srv, err := mcp.New(rt.Runtime, o)
	if err != nil {
		return err
	}
	if rt.Gateway != nil {
		rt.Gateway.SetServer(srv)
		rt.Gateway.Start() // definitions of servers need the runtime and its clients
	}
	if f.http != "" {
		err = serveHTTP(ctx, a, f, rt.Runtime, srv)
	} else {
		err = serveOne(ctx, a, f, rt.Runtime, srv)
	}
	switch {
	case told.Err() != nil && errors.Is(err, told.Err()):
		return nil
	case told.Err() == nil && ctx.Err() != nil: // every later call would be refused
		return journalFailed(&f.Workspace, context.Cause(ctx))
	}
	return err
}

// journalFailed is the end of a server that cannot record calls any more.
func journalFailed(p *state.Workspace, why error) error {
	return &cli.Problem{
		Code: cli.ExitInternal, What: "the server has ended: it could not record any more calls", Why: cli.PlainError(why),
		Fix: "start it again; " + p.Hint("log") + " shows what was recorded",
	}
}

// approvalMode returns the approval mode. If approvals need a passphrase, the
// server does not ask its client, because a client cannot prove one.
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

// instructions returns the text that tells a model about transactions.
func (f *serveFlags) instructions() string {
	text := "A policy authorizes the calls of these tools. They are recorded and can be reverted."
	if f.noTransactions {
		return text
	}
	return text + " To try something out, begin a transaction with txn_begin and current true, and end it with txn_commit or txn_revert." +
		" txn_revert also reverts a single call, by its id, after it is done. A call that was denied is not allowed when it is repeated."
}

// mcpFile returns the path of a server file in the state folder.
func (f *serveFlags) mcpFile(name string) string { return filepath.Join(f.StateDir, "mcp", name) }

// serveOne serves the client that started the command.
func serveOne(ctx context.Context, a *cli.App, f *serveFlags, rt *agent.Runtime, srv *mcp.Server) error {
	s, err := openSession(ctx, a, rt, &f.Flags, f.SessionFile)
	if err == nil {
		err = startup.Announce(ctx, a, &f.Flags, rt.Journal())
	}
	if err != nil {
		return err
	}
	release, err := agentguard.AnnounceServer(a)
	if err != nil {
		_, _ = fmt.Fprintln(a.Err, "remit: other commands cannot tell the client of this server from a person: "+cli.Printable(cli.PlainError(err)))
	}
	defer release()
	return srv.RunIO(ctx, io.NopCloser(a.In), nopWriteCloser{a.Out}, s)
}

// nopWriteCloser is a stream that its opener closes.
type nopWriteCloser struct{ io.Writer }

// Close does nothing.
func (nopWriteCloser) Close() error { return nil }

// serveHTTP serves clients that have a token.
func serveHTTP(ctx context.Context, a *cli.App, f *serveFlags, rt *agent.Runtime, srv *mcp.Server) error {
	file := f.mcpFile("token")
	_, err := openSession(ctx, a, rt, &f.Flags, file)
	if err == nil {
		err = startup.Announce(ctx, a, &f.Flags, rt.Journal())
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.http)
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("nothing can listen on %q", f.http), Why: cli.PlainError(err), Fix: "name another address, or port 0 for any that is free"}
	}
	where := Listening{URL: "http://" + l.Addr().String() + "/mcp", TokenFile: file}
	if f.JSON {
		a.WriteJSON(where)
	} else {
		_, _ = fmt.Fprintf(a.Out, "listening on %s\nclients send the token in %s as Authorization: Bearer; %s makes one for another session\n", where.URL, cli.Quote(where.TokenFile), f.Hint("token"))
	}
	return srv.Serve(ctx, l, mcp.HTTPOptions{Hosts: f.hosts, Origins: f.origins})
}

// Listening is the JSON form of the address of a server.
type Listening struct {
	URL       string `json:"url"`
	TokenFile string `json:"token_file"`
}
