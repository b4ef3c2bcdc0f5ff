package agentclients_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/agentclients"
)

// TestKilledAgents kills real agents at random moments of their work. An undo
// brings the tree back or names what is left, and the next session works.
func TestKilledAgents(t *testing.T) {
	prove(t)
	rounds := 2
	if os.Getenv("REMIT_LONG") != "" {
		rounds = 25
	}
	for _, c := range agentclients.Clients() {
		t.Run(c.Name, func(t *testing.T) {
			g := newGuarded(t, c.Install(t))
			for round := range rounds {
				g.killedAgent(rand.New(rand.NewPCG(2, uint64(round))), round)
			}
		})
	}
}

// killedAgent is one round.
func (g *guarded) killedAgent(r *rand.Rand, round int) {
	t := g.t
	g.empty() // the folder itself stays: a running daemon keeps it open
	g.files()
	was := g.tree()
	name, ended := fmt.Sprintf("killed %d.", round), make(chan struct{})
	delay, withDaemon := time.Duration(r.IntN(1500))*time.Millisecond, r.IntN(2) == 0
	go func() {
		defer close(ended)
		for try := 0; try < 12000; try++ { // until the work has begun
			if _, err := os.Stat(filepath.Join(g.dir, "begun")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(delay) // the moment of the crash
		g.killAll(withDaemon)
	}()
	slow := "for i in 1 2 3 4 5 6 7 8; do mkdir d$i; echo $i > d$i/f; sleep 0.05; done; rm -rf sub; sed -i s/two/TWO/ notes.txt"
	tr := g.run(commands(g.client.Name, name, "echo > begun", slow, "mv notes.txt n2.txt; rm -rf d1", slow))
	<-ended
	out := ""
	for _, e := range g.entries(name) {
		said, _ := g.remit("undo", e.Txn)
		out += said
	}
	for _, d := range g.differences(was) {
		require.Contains(t, out, d.Path, "%s, with the daemon: %v, codes %v", d, withDaemon, tr.Outcomes[0].Code)
		t.Logf("round %d: named: %s", round, d)
	}
	next := g.run(commands(g.client.Name, fmt.Sprintf("next %d.", round), "echo next > next.txt"))
	require.FileExists(t, filepath.Join(g.dir, "next.txt"), "%+v", next.Outcomes)
	_, code := g.remit("undo", g.entries(fmt.Sprintf("next %d.", round))[0].Txn)
	require.Zero(t, code)
	require.NoFileExists(t, filepath.Join(g.dir, "next.txt"))
}

// empty deletes what is in the workspace.
func (g *guarded) empty() {
	g.t.Helper()
	all, err := os.ReadDir(g.dir)
	require.NoError(g.t, err)
	for _, e := range all {
		require.NoError(g.t, os.RemoveAll(filepath.Join(g.dir, e.Name())))
	}
}

// killAll kills what runs in this home, with the resident process or without.
func (g *guarded) killAll(withDaemon bool) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	daemon := g.daemon()
	for _, name := range all {
		env, err := os.ReadFile(name)
		var pid int
		_, _ = fmt.Sscanf(name, "/proc/%d/", &pid)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), "HOME="+g.home) || pid == daemon && !withDaemon {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
