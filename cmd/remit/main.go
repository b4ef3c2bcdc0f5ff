// Command remit runs tool calls for agents. The policy decides each call before
// it runs, the runtime verifies it afterwards and journals it before it returns
// the result, and users can revert it.
package main

import (
	"context"
	"os"
	"os/signal"
	"os/user"
	"syscall"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	_ "github.com/remit-dev/remit/internal/hookclient/first"
	"github.com/remit-dev/remit/internal/host"
	_ "github.com/remit-dev/remit/internal/sandbox/first"
	_ "github.com/remit-dev/remit/internal/version/first"
)

func main() {
	// The reader of the output can exit. That must not affect the calls.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends a process that still waits for something
	code := run(ctx, os.Args[1:], cli.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv, Host: host.Real(), Username: userName, OpenTTY: cli.OpenTerminal, OpenPage: cli.OpenPage, Caller: cli.ThisProcess,
		OutTerminal: cli.IsTerminal(os.Stdout), ErrTerminal: cli.IsTerminal(os.Stderr),
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
