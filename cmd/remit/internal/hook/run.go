package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/hooks"
)

// idleFor is how long the resident process waits for another session before it
// ends.
const idleFor = 30 * time.Minute

func runDaemon(ctx context.Context, a *cli.App, readyFD int) (err error) {
	home, err := state.Home(a.Getenv)
	if err != nil {
		return err
	}
	l, err := listen(home)
	if errors.Is(err, errRunning) {
		tellReady(readyFD, "running")
		_, _ = fmt.Fprintln(a.Err, "remit: the resident process of this user already runs")
		return nil
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelInfo}))
	svc := &service{app: a, log: log, turns: newTurns()}
	defer svc.turns.release()
	defer func() { err = errors.Join(err, l.Close()) }() // and then the clients that wait start another process
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := newDaemon(a, log, home)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	svc.daemon = d
	svc.srv = hooks.New(self, func(err error) { log.Warn("a part of a session could not be finished or found", "error", err) }, d.workspace)
	d.settle = svc.srv.Settle
	carried, err := readCarried(home)
	if err != nil {
		log.Warn("what an earlier process knew of its sessions could not be read", "error", err)
	}
	svc.srv.Continue(carried)
	svc.watch = newWatcher(svc.srv, log, home)
	go endIdle(ctx, stop, svc.srv)
	tellReady(readyFD, "ready")
	err = svc.serve(ctx, l)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, writeCarried(home, svc.srv.Carry()), svc.srv.Close(end), d.close())
}

// tellReady tells the process that started this one that it listens.
func tellReady(fd int, word string) {
	if fd < 3 {
		return
	}
	f := readyFile(fd)
	_, _ = fmt.Fprintln(f, word)
	_ = f.Close()
}

// endIdle ends the process when it had no session for a while.
func endIdle(ctx context.Context, stop func(), srv *hooks.Server) {
	const step = time.Minute
	idle := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(step):
		}
		if idle += step; !srv.Idle() {
			idle = 0
		}
		if idle >= idleFor {
			stop()
			return
		}
	}
}
