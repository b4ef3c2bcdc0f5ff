//go:build unix

package program

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
)

// Guard ends the servers of a gateway that was killed, if they do not exit when
// their input ends. It is a separate process, which knows the process groups of
// the servers and reads until the gateway is gone. A parent-death signal of the
// kernel would reach the started program, such as npx, and not the server below
// it.
type Guard struct {
	writeLock chan struct{} // serializes writes to it
	stdin     io.WriteCloser
	cmd       *exec.Cmd
	none      bool // it did not start
}

// NewGuard returns a guard. Its process starts with the first server.
func NewGuard() *Guard { return &Guard{writeLock: make(chan struct{}, 1)} }

// guarding is the script of the process. Like localProcess.End it waits, asks
// and kills.
const guarding = `trap '' HUP INT TERM
all=' '
while read -r what group; do
	case $what in
	add) all="$all$group " ;;
	end) all="${all%% $group *} ${all#* $group }" ;;
	esac
done
for how in TERM KILL; do
	[ "$all" = ' ' ] && exit
	sleep 2
	for group in $all; do kill -s $how -- "-$group"; done
done 2>/dev/null
`

// begin starts the guard before the first server. The guard does not know a
// server between its start and watch.
func (g *Guard) begin(log *slog.Logger) {
	g.writeLock <- struct{}{}
	defer func() { <-g.writeLock }()
	if g.cmd != nil || g.none {
		return
	}
	if err := g.start(); err != nil {
		g.none = true
		log.Warn("servers that do not end with their input will stay if the gateway is killed", "error", err)
	}
}

// watch makes the guard end a server and its process group when the gateway is
// gone. The caller calls left when these have ended.
func (g *Guard) watch(group int) (left func()) {
	g.writeLock <- struct{}{}
	defer func() { <-g.writeLock }()
	if g.none {
		return func() {}
	}
	_, _ = fmt.Fprintln(g.stdin, "add", group) // if the guard was killed, it guards no more
	return func() {
		g.writeLock <- struct{}{}
		defer func() { <-g.writeLock }()
		_, _ = fmt.Fprintln(g.stdin, "end", group)
	}
}

func (g *Guard) start() error {
	cmd := exec.Command("sh", "-c", guarding)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	newProcessGroup(cmd)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		g.stdin, g.cmd = in, cmd
	}
	return err
}

// Close ends the guard after the servers have ended.
func (g *Guard) Close() {
	g.writeLock <- struct{}{}
	defer func() { <-g.writeLock }()
	if g.cmd == nil {
		return
	}
	_ = g.stdin.Close()
	_ = g.cmd.Wait() // it exits by itself
	g.cmd, g.none = nil, true
}
