//go:build !portable

package hook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/lineage"
)

// watcher knows the processes of the clients. It ends the sessions of clients
// that have ended, also those that were killed and sent no event.
type watcher struct {
	srv  *hooks.Server
	log  *slog.Logger
	home string

	mu   sync.Mutex
	seen map[string]*client // by name and session
}

// client is the process of a client that runs.
type client struct {
	name, session string
	chain         lineage.Chain // the client and those above it
	written       bool          // its record is
}

func newWatcher(srv *hooks.Server, log *slog.Logger, home string) *watcher {
	if err := agentguard.RemoveEnded(home); err != nil {
		log.Warn("the records of clients that have ended could not be removed", "error", err)
	}
	return &watcher{srv: srv, log: log, home: home, seen: map[string]*client{}}
}

// saw is called with each event, and the process that sent it. It begins to
// wait for the end of the client. It refuses an event that another process
// sends while the client of the session runs: a program of the agent could end
// a prompt, or the observation of a call.
func (w *watcher) saw(name string, e hooks.Event, pid int) error {
	key := name + "\x00" + e.Session
	sender := clientOf(pid)
	w.mu.Lock()
	known := w.seen[key]
	w.mu.Unlock()
	if first := w.runningClient(known, name, e.Session); first != 0 && first != sender {
		w.log.Warn("an event was refused: the client of its session did not send it", "client", name, "event", e.Name, "process", pid, "below", sender)
		return fmt.Errorf("process %d, the client of this session, still runs, and did not send this event", first)
	}
	if known != nil && known.chain.Links[0].Lives() {
		return nil
	}
	fd, err := unix.PidfdOpen(sender, 0)
	if err != nil {
		return nil // it has ended; the next event tries again
	}
	chain, err := lineage.Of(sender)
	if err != nil || len(chain.Links) == 0 {
		_ = unix.Close(fd)
		return nil
	}
	one := &client{name: name, session: e.Session, chain: chain}
	w.mu.Lock()
	w.seen[key] = one
	w.mu.Unlock()
	go w.await(fd, key, one)
	return nil
}

// runningClient returns the process of the client of a session, also if an
// earlier resident process knew it; 0: none runs.
func (w *watcher) runningClient(known *client, name, session string) int {
	if known != nil {
		if first := known.chain.Links[0]; first.Lives() {
			return first.PID
		}
		return 0
	}
	return agentguard.RunningClient(w.home, name, session)
}

// await waits for the end of a client.
func (w *watcher) await(fd int, key string, one *client) {
	defer func() { _ = unix.Close(fd) }()
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) //nolint:gosec // a descriptor
		if err == nil {
			break
		}
	}
	w.mu.Lock()
	current := w.seen[key] == one
	if current {
		delete(w.seen, key)
	}
	w.mu.Unlock()
	if !current { // another process of the client continues the session
		return
	}
	err := w.srv.End(context.Background(), one.name, one.session)
	if err = errors.Join(err, agentguard.Remove(w.home, one.name, one.session)); err != nil {
		w.log.Warn("the prompt of a client that ended could not be committed", "client", one.name, "error", err)
	}
}

// opened records the client of a session, before the client uses a tool.
func (w *watcher) opened(name, session string) {
	w.mu.Lock()
	one := w.seen[name+"\x00"+session]
	done := one == nil || one.written
	w.mu.Unlock()
	if done {
		return
	}
	s := w.srv.Agent(name, session)
	if s == nil {
		return
	}
	r := agentguard.Record{Client: name, Session: session, Journal: s.ID(), Process: agentguard.ClientProcess(one.chain)}
	if err := agentguard.Write(w.home, r); err != nil {
		w.log.Warn("a client could not be recorded, so remit does not know its programs", "client", name, "error", err)
		return
	}
	w.mu.Lock()
	one.written = true
	w.mu.Unlock()
}

// sessionsAbove returns the sessions of the clients above a process.
func (w *watcher) sessionsAbove(pid int) (all []*agent.Session, err error) {
	chain, err := lineage.Of(pid)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.seen {
		first := one.chain.Links[0]
		above := func(l lineage.Link) bool { return l.PID == first.PID && l.Start == first.Start }
		if s := w.srv.Agent(one.name, one.session); s != nil && slices.ContainsFunc(chain.Links, above) {
			all = append(all, s)
		}
	}
	return all, nil
}

// shells are the programs with which clients run the command lines of hooks.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish", "busybox", "nu"}

// clientOf returns the process that started a hook: its parent, or the next one
// above if that is the shell that runs the command line of the hook. The shell
// of a tool that starts remit hook is not passed.
func clientOf(pid int) int {
	parent, _ := parentOf(pid)
	for range 3 {
		above, name := parentOf(parent)
		if above <= 1 || !slices.Contains(shells, name) || !runsHook(parent) {
			break
		}
		parent = above
	}
	return parent
}

// runsHook reports whether the command line of a shell is that of a hook, as
// remit connect writes it.
func runsHook(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	for _, word := range strings.Split(string(text), "\x00") {
		if isHookLine(word) {
			return true
		}
	}
	return false
}

// isHookLine reports whether a word is the command line of a hook: it runs
// nothing else, and reads no other input.
func isHookLine(word string) bool {
	line := strings.TrimPrefix(strings.TrimSpace(word), "sh -c '")
	line = strings.TrimPrefix(line, "exec ")
	if rest, ok := strings.CutPrefix(line, `"$0" hook `); ok {
		_, rest, ok = strings.Cut(rest, ` || { [ $? = 2 ] || echo "remit failed, so the call does not run" >&2; exit 2; }`)
		return ok && !strings.ContainsAny(rest, "|;&<>`$\n")
	}
	before, name, ok := strings.Cut(line, " hook ")
	_, isClient := hooks.Find(name)
	return ok && isClient && before != "" && !strings.ContainsAny(before, "|;&<>`$\n")
}

// parentOf returns the parent and the name of a process; 0 if it has ended.
func parentOf(pid int) (parent int, name string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || end < open {
		return 0, ""
	}
	var state string
	if _, err := fmt.Sscan(string(text[end+1:]), &state, &parent); err != nil {
		return 0, ""
	}
	return parent, string(text[open+1 : end])
}
