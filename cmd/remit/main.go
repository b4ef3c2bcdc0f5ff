// Command remit runs calls of tools for agents: each is asked for by a policy
// before it runs, verified after it ran, is on a durable journal before anybody
// sees its result, and can be taken back.
package main

import (
	"context"
	"os"
	"os/signal"
	"os/user"
	"syscall"

	"github.com/remit-dev/remit/internal/host"
	_ "github.com/remit-dev/remit/internal/sandbox/first"
)

func main() {
	// Whoever reads the answers may go away; what becomes of the calls does not
	// depend on it.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], cmdEnv{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		env: os.Getenv, host: host.Real(), user: userName, tty: openTerminal, browse: browse, caller: thisProcess,
		terminal: isTerminal(os.Stdout), terminalErr: isTerminal(os.Stderr),
	})
	stop()
	os.Exit(code)
}

func userName() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}
