package hook

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/semver"

	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/internal/hookclient/netclient"
)

// A resident process runs for long, and remit can be replaced meanwhile. A
// client of a newer build asks the old process to give way. That process first
// ends what it began: the newer client waits only if no call is in flight, and
// is served by the old process otherwise. Then it commits the prompts, closes
// the journals, writes down what the sessions know, frees the socket, and tells
// the clients that wait to start another process. An older client is served.

// turns counts the requests in flight, and ends their service.
type turns struct {
	build string // of this process

	mu      sync.Mutex // never held across a wait
	active  int
	ended   bool
	newer   map[string]bool // by build
	leaving chan struct{}   // closed when ended is
	idle    chan struct{}   // closed when ended is, and no request is in flight
	left    chan struct{}   // closed when another process can serve

	accepting sync.WaitGroup
	open      sync.WaitGroup // connections
}

func newTurns() *turns {
	return &turns{build: netclient.Build(), newer: map[string]bool{}, leaving: make(chan struct{}), idle: make(chan struct{}), left: make(chan struct{})}
}

// enter begins a request. It returns false if this process begins none any
// more.
func (t *turns) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.active++
	}
	return !t.ended
}

// exit ends a request.
func (t *turns) exit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.active--; t.ended && t.active == 0 {
		close(t.idle)
	}
}

// end begins no more requests. The caller holds mu.
func (t *turns) end() {
	if t.ended {
		return
	}
	t.ended = true
	if close(t.leaving); t.active == 0 {
		close(t.idle)
	}
}

// leave begins no more requests, and waits for those in flight.
func (t *turns) leave() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	<-t.idle
}

// givesWay ends the service for the client of another build, if that is newer
// and nothing is in flight. It reports whether the service has ended.
func (t *turns) givesWay(build string, pid int, busy func() bool) bool {
	if !t.isNewer(build, pid) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended && t.active == 0 && !busy() {
		t.end()
	}
	return t.ended
}

// isNewer reports whether a build is newer than this one: by its version, if
// both have one, and else by the time of its file.
func (t *turns) isNewer(build string, pid int) bool {
	if build == t.build {
		return false
	}
	t.mu.Lock()
	newer, known := t.newer[build]
	t.mu.Unlock()
	if known {
		return newer
	}
	theirs, ours := versionOf(programOf(pid)), versionOf(programOf(os.Getpid()))
	if theirs != "" && ours != "" && semver.Compare(theirs, ours) != 0 {
		newer = semver.Compare(theirs, ours) > 0
	} else {
		newer = timeOf(build) > timeOf(t.build)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.newer) > 100 {
		clear(t.newer)
	}
	t.newer[build] = newer
	return newer
}

// versionOf returns the version in a program, or "".
func versionOf(path string) string {
	if path == "" {
		return ""
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil || !semver.IsValid(info.Main.Version) {
		return ""
	}
	return info.Main.Version
}

// timeOf returns the time in a build; see netclient.Build.
func timeOf(build string) int64 {
	text, _, _ := strings.Cut(build, "-")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// release tells the clients that wait to start another process, and returns
// when they know.
func (t *turns) release() {
	close(t.left)
	t.accepting.Wait()
	t.open.Wait()
}

// handOver answers once another process can serve.
func (s *service) handOver(conn *net.UnixConn) error {
	<-s.turns.left
	_, err := fmt.Fprintf(conn, "%s 0 0 0\n", hookclient.Handover)
	return err
}

// foreign answers a client of another protocol. Its request cannot be read.
func (s *service) foreign(conn *net.UnixConn, r request, pid int) error {
	newer := s.turns.isNewer(r.build, pid)
	if newer && s.turns.givesWay(r.build, pid, s.srv.Busy) {
		return s.handOver(conn)
	}
	theirs := r.protocol
	if !strings.HasPrefix(theirs, "remit/") {
		theirs = "an earlier one"
	}
	why := fmt.Sprintf("this hook belongs to an earlier version of remit than the resident process (protocol %s, not %s): run remit connect again, and restart the agent", theirs, hookclient.Protocol())
	if newer {
		why = "remit was replaced by a newer version, and calls that began before are still in flight: restart the agents that run, or try again when these calls have ended"
	}
	s.log.Warn("a client of another protocol was refused", "protocol", theirs, "newer", newer)
	_, err := fmt.Fprintf(conn, "%s 0 0 %d\n%s", hookclient.Refused, len(why), why)
	return err
}

// carryFile has what the sessions of a process that ended know.
const carryFile = "carry"

// writeCarried keeps what sessions know for the next process.
func writeCarried(home string, all []hooks.Carried) error {
	if len(all) == 0 {
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	path := filepath.Join(home, filepath.FromSlash(hookclient.Folder), carryFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// readCarried returns what an earlier process wrote, once.
func readCarried(home string) (all []hooks.Carried, err error) {
	path := filepath.Join(home, filepath.FromSlash(hookclient.Folder), carryFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, errors.Join(err, os.Remove(path))
}
