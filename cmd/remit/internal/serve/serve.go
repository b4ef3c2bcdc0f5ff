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
	"github.com/remit-dev/remit/cmd/remit/internal/approval"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/revert"
)

// Command returns remit serve.
func Command(a *cli.App) *cobra.Command {
	var f serveFlags
	keep := revert.Retention{MaxAge: revert.DefaultKeep, KeepLast: revert.DefaultKeepLast}
	cmd := &cobra.Command{
		Use: "serve [--stdio | --http ADDR] [flags]", Short: "Serve the tools over MCP, with undo",
		Long: "Serves the tools of remit to MCP clients, in all revisions of the protocol. A call that names no transaction is one by\n" +
			"itself, and can be reverted by the id in its result, by the tool txn_revert, or by remit revert.\n\n" +
			"--stdio, the default, is for one client, which starts the command. --http serves any number, each in the session that its\n" +
			"token proves: one is made at the first start and kept in the state folder, which the command names; remit token\n" +
			"makes others. It listens on loopback; another address needs --allow-remote and --host.",
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
	flags := cmd.Flags()
	flags.BoolVar(&f.Upstreams.Strict, "quarantine-new", false, "with --config: keep what servers declare at their first start in quarantine too")
	flags.BoolVar(&f.stdio, "stdio", false, "speak over standard input and output, with one client (the default)")
	flags.StringVar(&f.http, "http", "", "listen for HTTP on `ADDR`, such as 127.0.0.1:8321; port 0 is any that is free. The path is /mcp")
	flags.StringVar(&f.SessionFile, "session", "", "with --stdio: `FILE` that keeps a secret by which the next start goes on in the same session; made where it is not there")
	flags.StringVar(&f.OnAsk, "on-ask", "elicit", "what happens when the policy asks: elicit asks the person at the client, where the client can, and else waits; wait for remit approve; deny")
	flags.StringVar(&f.Notify, "notify", "", "shell command `CMD` that is run for each call that waits for approval, with what it is in REMIT_CALL, REMIT_TOOL and so on, and as JSON on standard input; ended after 10 seconds")
	flags.StringArrayVar(&f.hosts, "host", nil, "with --http: another `NAME` that requests may be addressed to, beside those of loopback")
	flags.StringArrayVar(&f.origins, "origin", nil, "with --http: the `ORIGIN` of a web page that may call, such as https://example.com")
	flags.BoolVar(&f.expose, "allow-remote", false, "listen beyond this machine: a client that reaches ADDR with a token acts as the session of the token; without encryption before it, others on the network can read")
	flags.BoolVar(&f.noTransactions, "no-transactions", false, "do not offer the tools txn_begin, txn_commit, txn_preview, txn_revert and txn_status")
	taskFlags(cmd, &f.tasks)
	cli.AddRetentionFlags(cmd, &keep, "have the server drop old records beside its traffic (default: nothing is dropped): ")
	flags.BoolVar(&f.JSON, "json", false, "with --http: say where it listens as one JSON object")
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
	key, err := secretFile(f.mcpFile("key"), newKey)
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
		rt.Gateway.Start() // definitions of servers need the runtime and its clients
	}
	if f.http != "" {
		err = serveHTTP(ctx, a, f, rt.Runtime, srv)
	} else {
		err = serveOne(ctx, a, f, rt.Runtime, srv)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // the command was told to end
	}
	return err
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
	if err != nil {
		return err
	}
	return srv.RunIO(ctx, io.NopCloser(a.In), nopWriteCloser{a.Out}, s)
}

// nopWriteCloser is a stream that its opener closes.
type nopWriteCloser struct{ io.Writer }

// Close does nothing.
func (nopWriteCloser) Close() error { return nil }

// serveHTTP serves clients that have a token.
func serveHTTP(ctx context.Context, a *cli.App, f *serveFlags, rt *agent.Runtime, srv *mcp.Server) error {
	file := f.mcpFile("token")
	if _, err := openSession(ctx, a, rt, &f.Flags, file); err != nil {
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
