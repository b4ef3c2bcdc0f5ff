//go:build unix

package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
)

// guard ends the servers of a gateway that was killed, and so could not end them: those that do not go when their input ends. It is a process
// of its own, which knows the groups of the servers and reads until the gateway is gone. A signal that the kernel sends when a parent dies
// would reach the program that was started, such as npx, and not the server below it.
type guard struct {
	turn chan struct{} // one at a time tells it something
	in   io.WriteCloser
	cmd  *exec.Cmd
	none bool // it could not be started
}

func newGuard() *guard { return &guard{turn: make(chan struct{}, 1)} }

// guarding is what the process does. Like plain.end it waits, asks and ends.
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

// begin starts it, before the first server: what is between the start of a server and watch, it knows nothing of.
func (g *guard) begin(log *slog.Logger) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.cmd != nil || g.none {
		return
	}
	if err := g.start(); err != nil {
		g.none = true
		log.Warn("servers that do not end with their input will stay if the gateway is killed", "error", err)
	}
}

// watch has it end a server, and all that is of its group, when the gateway is gone. Left is called when these have ended.
func (g *guard) watch(group int) (left func()) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.none {
		return func() {}
	}
	_, _ = fmt.Fprintln(g.in, "add", group) // if it was ended, it guards no more
	return func() {
		g.turn <- struct{}{}
		defer func() { <-g.turn }()
		_, _ = fmt.Fprintln(g.in, "end", group)
	}
}

func (g *guard) start() error {
	cmd := exec.Command("sh", "-c", guarding)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	newProcessGroup(cmd)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		g.in, g.cmd = in, cmd
	}
	return err
}

// close ends it when the servers have ended.
func (g *guard) close() {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	if g.cmd == nil {
		return
	}
	_ = g.in.Close()
	_ = g.cmd.Wait() // it ends by itself
	g.cmd, g.none = nil, true
}
