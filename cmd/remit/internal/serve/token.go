package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/upstream"
)

// TokenCommand returns remit token.
func TokenCommand(a *cli.App) *cobra.Command {
	var f startup.Flags
	var file string
	var span time.Duration
	var calls int
	cmd := &cobra.Command{
		Use: "token --principal ID [--role R]… [flags]", Short: "Create a session for a client of remit serve --http, and print its token",
		Long: "Creates a session, and writes its token to standard output, or to a file that only you can read. A client of remit\n" +
			"serve --http with this token acts as --principal. Use the same roots, databases, services, secrets and tool files as\n" +
			"the server: the session holds what existed at its creation, and never more than the server has. Without --config, it\n" +
			"holds the MCP servers of the gateway that the state folder served last. The policy and the other flags of the server\n" +
			"apply to its calls. The session ends after --for or --max-calls; remit grants revoke ends it earlier.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !cmd.Flags().Changed("principal") {
				return cli.UsageProblem("--principal says who acts by the token")
			}
			if file == "" && cmd.Flags().Changed("out") {
				return cli.UsageProblem("--out names no file; is a variable not set?")
			}
			if span < 0 {
				return cli.UsageProblem(fmt.Sprintf("--for %s is over before it begins", span))
			}
			if calls < 0 {
				return cli.UsageProblem(fmt.Sprintf("--max-calls %d is less than none; 0 is any number", calls))
			}
			if err := f.Check(); err != nil {
				return err
			}
			if err := useLastConfig(a, &f.Workspace); err != nil {
				return err
			}
			f.SessionFile = file // the check of session files covers it
			rt, err := startup.Open(cmd.Context(), a, &f)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rt.Close()) }()
			made := TokenOutput{As: f.As, File: file}
			var bounds []agent.SessionOption
			if span > 0 {
				made.Expires = time.Now().Add(span).UTC().Truncate(time.Second)
				bounds = append(bounds, agent.Expires(made.Expires))
			}
			if calls > 0 {
				bounds = append(bounds, agent.MaxUses(calls))
			}
			s, err := NewSession(cmd.Context(), rt.Runtime, &f, bounds...)
			if err != nil {
				return err
			}
			made.Session = s.ID()
			if file != "" {
				if err := startup.WriteToken(file, s.Token()); err != nil {
					return err
				}
			} else {
				made.Token = s.Token()
			}
			return writeToken(a, made, f.JSON)
		},
	}
	f.OnAsk = "deny" // the command runs no call
	AddSessionFlags(a, cmd, &f)
	cmd.Flags().StringVar(&file, "out", "", "write the token to a new `FILE` that only you can read")
	cmd.Flags().DurationVar(&span, "for", defaultTokenTime, "`TIME` until the token expires, such as 8h; 0: never")
	cmd.Flags().IntVar(&calls, "max-calls", 0, "maximum number of calls, `N`, that can start with the token, counted on the journal (default: no limit)")
	cmd.Flags().BoolVar(&f.JSON, "json", false, "write one JSON object")
	return cmd
}

// defaultTokenTime is the default duration of a token.
const defaultTokenTime = 30 * 24 * time.Hour

// useLastConfig selects the gateway configuration that the state folder served
// last, if the flags name none.
func useLastConfig(a *cli.App, p *state.Workspace) error {
	at := *p
	if p.Upstreams.Config != "" {
		return nil
	}
	if err := at.Find(a); err != nil {
		return err
	}
	noted, err := os.ReadFile(upstream.NoteFile(&at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(string(noted)); err != nil {
		_, _ = fmt.Fprintf(a.Err, "remit: the token is for no MCP servers: the configuration of those that were served last cannot be read: %v\n", err)
		return nil
	}
	p.Upstreams.Config = string(noted)
	return nil
}

// TokenOutput is the JSON form of a new session and its token.
type TokenOutput struct {
	Session string `json:"session"`
	As      string `json:"as"`
	Token   string `json:"token,omitempty"`
	File    string `json:"file,omitempty"`

	Expires time.Time `json:"expires,omitzero"`
}

func writeToken(a *cli.App, made TokenOutput, asJSON bool) error {
	if asJSON {
		a.WriteJSON(made)
		return nil
	}
	if made.File != "" {
		until := ""
		if !made.Expires.IsZero() {
			until = ", and is good until " + made.Expires.Format(time.RFC3339)
		}
		_, err := fmt.Fprintf(a.Out, "session %s of %s; its token is in %s%s\n", made.Session, cli.Printable(made.As), cli.Quote(made.File), until)
		return err
	}
	_, err := fmt.Fprintln(a.Out, made.Token)
	return err
}
