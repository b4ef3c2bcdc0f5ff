package hook

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/hooks"
)

// watcher ends the sessions of clients that have ended, also those that were
// killed and sent no event.
type watcher struct {
	srv *hooks.Server
	log *slog.Logger

	mu   sync.Mutex
	seen map[string]bool // sessions with a goroutine that waits for their client
}

func newWatcher(srv *hooks.Server, log *slog.Logger) *watcher {
	return &watcher{srv: srv, log: log, seen: map[string]bool{}}
}

// saw begins to wait for the end of the client that sent an event.
func (w *watcher) saw(client string, e hooks.Event, pid int) {
	key := client + "\x00" + e.Session
	w.mu.Lock()
	known := w.seen[key]
	w.seen[key] = true
	w.mu.Unlock()
	if known {
		return
	}
	fd, err := unix.PidfdOpen(clientOf(pid), 0)
	if err != nil {
		w.mu.Lock()
		delete(w.seen, key) // the next event tries again
		w.mu.Unlock()
		return
	}
	go func() {
		defer func() { _ = unix.Close(fd) }()
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1) //nolint:gosec // a descriptor
			if err == nil {
				break
			}
		}
		w.mu.Lock()
		delete(w.seen, key)
		w.mu.Unlock()
		if err := w.srv.End(context.Background(), client, e.Session); err != nil {
			w.log.Warn("the prompt of a client that ended could not be committed", "client", client, "error", err)
		}
	}()
}

// clientOf returns the process that started a hook: its parent, or the next one
// above if that is the shell that runs the command line.
func clientOf(pid int) int {
	parent, _ := parentOf(pid)
	for range 3 {
		above, name := parentOf(parent)
		if above <= 1 || name != "sh" && name != "bash" && name != "dash" && name != "zsh" {
			break
		}
		parent = above
	}
	return parent
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
