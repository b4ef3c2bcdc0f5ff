package agent

import (
	"context"
	"errors"
	"time"

	"github.com/remit-dev/remit/revert"
)

// Retain starts pruning in the background, until Close: it deletes the revert
// data of transactions that are past retention; see Prune. It returns at once.
// It prunes beside calls, at intervals of an eighth of keep.MaxAge: at most once
// a second and at least once an hour. Several runtimes on one journal take turns. The log
// names what could not be deleted, and the next round tries again. Default:
// nothing is deleted.
func (rt *Runtime) Retain(keep revert.Retention) error {
	switch {
	case keep.MaxAge < 0 || keep.KeepLast < 0:
		return errors.New("agent: retention: MaxAge and KeepLast must not be negative")
	case keep.DryRun:
		return errors.New("agent: retention: DryRun drops nothing; call Prune for it")
	}
	rt.exchange.Lock()
	defer rt.exchange.Unlock()
	if err := rt.open(); err != nil {
		return err
	}
	if rt.retention != nil {
		return errors.New("agent: retention: it was begun before; open another runtime for another one")
	}
	rt.retention = rt.retain(keep)
	return nil
}

// Bounds of the interval of a retention, and of its first delay: a server that
// a client starts can end soon.
const (
	retainOften = time.Second
	retainRare  = time.Hour
	retainFirst = 10 * time.Second
)

// retention is the background work of Retain.
type retention struct {
	rt         *Runtime
	every      time.Duration
	by         *revert.Retainer
	lastLogged string // the error that was logged last; "": the last run succeeded
	stop       context.CancelFunc
	ended      chan struct{}
}

func (rt *Runtime) retain(keep revert.Retention) *retention {
	ctx, stop := context.WithCancel(context.Background())
	r := &retention{
		rt: rt, by: rt.services.Reverter.Retain(keep), stop: stop, ended: make(chan struct{}),
		every: min(max(keep.MaxAge/8, retainOften), retainRare),
	}
	go r.loop(ctx)
	return r
}

func (r *retention) loop(ctx context.Context) {
	defer close(r.ended)
	for wait := min(r.every, retainFirst); ; wait = r.every {
		next, done := r.rt.services.Host.WithTimeout(ctx, wait, nil)
		<-next.Done()
		done()
		if ctx.Err() != nil {
			return
		}
		r.run(ctx)
	}
}

// run prunes once. It logs an error if it is new.
func (r *retention) run(ctx context.Context) {
	done, err := r.by.Run(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		r.lastLogged = ""
		if done.Txns > 0 {
			r.rt.log.Debug("retention dropped what was past it", "transactions", done.Txns, "content", done.Blobs, "kept", len(done.Kept))
		}
	case err.Error() != r.lastLogged:
		r.lastLogged = err.Error()
		r.rt.log.Error("retention could not drop what is past it; it tries again", "error", r.lastLogged, "every", r.every)
	}
}

// end stops the work and waits until it has stopped.
func (r *retention) end() {
	if r == nil {
		return
	}
	r.stop()
	<-r.ended
}
