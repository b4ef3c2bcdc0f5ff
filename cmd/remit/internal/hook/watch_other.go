//go:build portable || !linux

package hook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/lineage"
)

// silentFor is how long a session goes on without an event. This system does
// not tell which process is the client, so that its end shows by nothing else.
const silentFor = 2 * time.Hour

// watcher ends the sessions of clients that are silent. While a session is
// open, a record tells other commands that an agent works.
type watcher struct {
	srv  *hooks.Server
	log  *slog.Logger
	home string

	mu   sync.Mutex // never held across a wait
	seen map[string]*client
}

// client is a session of a client.
type client struct {
	name, session string
	written       bool // its record is
	silent        *time.Timer
}

func newWatcher(srv *hooks.Server, log *slog.Logger, home string) *watcher {
	if err := agentguard.RemoveAll(home); err != nil {
		log.Warn("the records of clients that have ended could not be removed", "error", err)
	}
	return &watcher{srv: srv, log: log, home: home, seen: map[string]*client{}}
}

// saw is called with each event. Whether the client of the session sent it is
// unknown here.
func (w *watcher) saw(name string, e hooks.Event, _ int) error {
	key := name + "\x00" + e.Session
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.seen[key]
	if one == nil {
		one = &client{name: name, session: e.Session}
		w.seen[key] = one
	} else {
		one.silent.Stop()
	}
	one.silent = time.AfterFunc(silentFor, func() { w.end(key, one) })
	return nil
}

// end ends a session that was silent, unless the client works on a tool.
func (w *watcher) end(key string, one *client) {
	if w.srv.Busy() {
		w.mu.Lock()
		defer w.mu.Unlock()
		one.silent.Reset(silentFor)
		return
	}
	w.mu.Lock()
	delete(w.seen, key)
	w.mu.Unlock()
	err := w.srv.End(context.Background(), one.name, one.session)
	if err = errors.Join(err, agentguard.Remove(w.home, one.name, one.session)); err != nil {
		w.log.Warn("the prompt of a client that was silent could not be committed", "client", one.name, "error", err)
	}
}

// opened records that the session of a client is open, and removes the record
// when the client has ended it.
func (w *watcher) opened(name, session string) {
	key := name + "\x00" + session
	s := w.srv.Agent(name, session)
	w.mu.Lock()
	one := w.seen[key]
	if s == nil {
		delete(w.seen, key)
	}
	w.mu.Unlock()
	switch {
	case one == nil:
		return
	case s == nil:
		one.silent.Stop()
		if err := agentguard.Remove(w.home, name, session); err != nil {
			w.log.Warn("the record of a client that ended could not be removed", "client", name, "error", err)
		}
		return
	case one.written:
		return
	}
	r := agentguard.Record{Client: name, Session: session, Journal: s.ID(), Process: lineage.AskingProcess{Processes: []lineage.Process{}, Unknown: lineage.ErrUnknown.Error()}}
	if err := agentguard.Write(w.home, r); err != nil {
		w.log.Warn("a client could not be recorded, so remit does not know its programs", "client", name, "error", err)
		return
	}
	w.mu.Lock()
	one.written = true
	w.mu.Unlock()
}

// sessionsAbove returns an error: an agent cannot revert here.
func (*watcher) sessionsAbove(int) ([]*agent.Session, error) { return nil, lineage.ErrUnknown }
