package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/sandbox"
)

// ErrSignaled states that a program did not end within its Attachment.Grace
// after a signal, and was killed.
var ErrSignaled = errors.New("the program did not end after a signal, and was killed")

// forward sends the caller's signals to the program until done is closed. It
// calls kill if the program does not end in time.
func (a *Attachment) forward(on host.Host, proc *sandbox.Process, p *pipes, done <-chan struct{}, kill context.CancelCauseFunc) {
	signals, late := a.Signals, (<-chan struct{})(nil)
	var first syscall.Signal
	for {
		select {
		case <-done:
			return
		case <-late:
			kill(fmt.Errorf("%w: it got %q and had %s", ErrSignaled, first, a.grace()))
			return
		case sig, ok := <-signals:
			switch {
			case !ok:
				signals = nil
				continue
			case isResize(sig):
				p.resize()
				continue
			}
			_ = proc.Signal(sig) // fails only at the end of the sandbox
			if ends(sig) && late == nil {
				first = sig
				ctx, cancel := on.WithTimeout(context.Background(), a.grace(), ErrSignaled)
				defer cancel()
				late = ctx.Done()
			}
		}
	}
}

func (a *Attachment) grace() time.Duration {
	if a.Grace > 0 {
		return a.Grace
	}
	return defaultGrace
}

// ends reports whether a signal requests the end of a program.
func ends(sig syscall.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP
}
