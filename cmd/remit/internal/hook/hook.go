package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/internal/hookclient/netclient"
)

// Command returns remit hook. The resident process answers most events before
// this command starts; see internal/hookclient.
func Command(a *cli.App) *cobra.Command {
	var names []string
	for _, c := range hooks.Clients() {
		names = append(names, c.Name)
	}
	return &cobra.Command{
		Use: "hook CLIENT", Short: "Answer one event of a coding agent",
		Long: "Reads one event of a coding agent on standard input, and writes the answer in the form that the agent reads.\n" +
			"remit connect writes this command into the configuration of the agent. CLIENT is one of " + strings.Join(names, ", ") + ".\n" +
			"The command starts remit daemon if it does not run yet.",
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.UsageProblem("remit hook: needs one client: " + strings.Join(names, ", "))
			}
			if _, ok := hooks.Find(args[0]); !ok {
				return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the client %q is unknown", args[0]), Fix: "valid are " + strings.Join(names, ", ")}
			}
			code, err := answer(cmd.Context(), a, args[0])
			if err != nil {
				return &cli.Problem{Code: cli.ExitUsage, What: "the resident process of remit cannot be started", Why: cli.PlainError(err), Fix: "see remit daemon"}
			}
			a.ExitWith(cli.ExitCode(code))
			return nil
		},
	}
}

// answer starts the resident process if none runs, and lets it answer. One that
// hands over has ended; a client of an older build can then start one first.
func answer(ctx context.Context, a *cli.App, client string) (int, error) {
	line := []string{"remit", "hook", client}
	for range 4 {
		if code, handled := netclient.Run(line); handled {
			return code, nil
		}
		if err := spawn(ctx, a); err != nil {
			return 0, err
		}
	}
	code, handled := netclient.Run(line)
	if !handled {
		return 0, errors.New("it does not listen")
	}
	return code, nil
}

// spawn starts a resident process that outlives this one, and waits until it
// listens. If another process starts one at the same time, that one is enough.
func spawn(ctx context.Context, a *cli.App) (err error) {
	home, err := state.Home(a.Getenv)
	if err != nil {
		return err
	}
	dir := filepath.Join(home, filepath.FromSlash(hookclient.Folder))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("its folder %s: %v", cli.Quote(dir), cli.PlainError(err)) // the path is what helps
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	says, ready, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = says.Close() }()
	cmd := exec.Command(self, "daemon") //nolint:gosec // this program
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd, ready)
	err = cmd.Start()
	_ = ready.Close()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = says.Close() })
	defer stop()
	text := make([]byte, 256)
	n, _ := says.Read(text) // ends when it listens, and when it ended
	if word := string(text[:n]); word != "ready\n" && word != "running\n" {
		return fmt.Errorf("it ended at once; %s tells why", cli.Quote(log.Name()))
	}
	return cmd.Process.Release()
}
