package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// serveDiskKilled is the process of TestFoldersKilled: a call, in the middle of which the server kills it.
func serveDiskKilled() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	state, dir := os.Getenv("STATE"), os.Getenv("DIR")
	j, err := sqlite.Open(ctx, filepath.Join(state, "journal"))
	must(err)
	c, err := config.Parse("gateway.json", []byte(os.Getenv("CONFIG")), os.LookupEnv)
	must(err)
	g, err := gateway.Open(ctx, c, gateway.Options{State: state, Roots: map[string]string{"workspace": dir}})
	must(err)
	g.Start()
	g.Await(ctx)
	k, err := process.NewSnapshotter(process.SnapshotConfig{Dir: filepath.Join(state, "kept")})
	must(err)
	killing := &killer{Host: host.Real(), at: -1}
	rt, err := agent.New(agent.Tools(g.Tools()...), agent.Root("workspace", dir), agent.Journal(j), agent.Driver(k), agent.Host(killing),
		agent.Policy(perm.EngineFunc((&gatewaySetup{}).decide)), agent.Log(slog.New(slog.DiscardHandler)))
	must(err)
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	must(err)
	tx, err := s.Begin(ctx)
	must(err)
	fmt.Println(tx.ID())
	var in diskSteps
	must(canon.Decode([]byte(os.Getenv("DEEDS")), &in))
	killing.begin(os.Getenv("KILL_AT"))
	_, err = tx.Invoke(ctx, "d__act", do("", in.Steps...))
	must(err)
	killing.end()
}

// killer is the real world, in which the process is killed at one of its scheduling points.
type killer struct {
	host.Host

	mu       sync.Mutex
	at, seen int // at is negative before it counts
	ids      []string
}

func (k *killer) begin(at string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, _ = strconv.Atoi(at)
}

// end says which points there were.
func (k *killer) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	fmt.Println(strings.Join(k.ids, " "))
}

func (k *killer) Point(ctx context.Context, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at >= 0 {
		k.ids, k.seen = append(k.ids, id), k.seen+1
	}
	if k.at > 0 && k.seen == k.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return k.Host.Point(ctx, id)
}

// killAt makes a call in a process that is killed, and returns its transaction and what it said before: which points it passed where
// it was not killed.
func (h *gatewaySetup) killAt(at int, all []diskStep) (txn, points string) {
	h.t.Helper()
	h.config = `{"mcpServers": {"d": ` + h.server("disk", nil) + `}, "remit": {"servers": ` + wholeRoot + `}}`
	raw, err := canon.Marshal(diskSteps{Steps: all})
	require.NoError(h.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SERVER=diskKilled", "DIR="+h.dir, "STATE="+h.state, "CONFIG="+h.config, "DEEDS="+string(raw), "KILL_AT="+strconv.Itoa(at))
	said, err := cmd.Output()
	txn, points, _ = strings.Cut(strings.TrimSpace(string(said)), "\n")
	if points == "" {
		require.ErrorContains(h.t, err, "killed", string(said))
	}
	return txn, points
}

// after is what comes after a death: another process, on the journal.
func (h *gatewaySetup) after() {
	h.t.Helper()
	j, err := sqlite.Open(h.t.Context(), filepath.Join(h.state, "journal"))
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = j.Close() })
	h.journal = j
	h.begin()
}

// TestFoldersLost: where what was kept is gone, or the root is another one by now, nobody can tell what an interrupted call did.
func TestFoldersLost(t *testing.T) {
	for why, lose := range map[string]func(h *gatewaySetup){
		"is gone from": func(h *gatewaySetup) { require.NoError(t, os.RemoveAll(filepath.Join(h.state, "kept"))) },
		"another folder": func(h *gatewaySetup) {
			require.NoError(t, os.Rename(h.dir, h.dir+".old"))
			require.NoError(t, os.Mkdir(h.dir, 0o755))
		},
	} {
		h := newGatewaySetup(t)
		h.furnish()
		h.killAt(0, []diskStep{{"write", "new.txt", "new"}, {Do: "kill"}})
		lose(h)
		h.after()
		rec, err := h.rt.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, rec.Settled, 1)
		require.Equal(t, revert.PhaseUnknown, rec.Settled[0].Outcome)
		require.Contains(t, rec.Settled[0].Why, why)
	}
}

// TestFoldersKilledAnywhere: wherever the gateway is killed around what it keeps, tells and writes down, recovery and an undo lead
// back to what was there before, byte for byte.
func TestFoldersKilledAnywhere(t *testing.T) {
	h := newGatewaySetup(t)
	h.furnish()
	_, said := h.killAt(0, everything())
	points := strings.Fields(said)
	tried := 0
	for i, id := range points {
		near := strings.HasPrefix(id, "process.") || i > 0 && strings.HasPrefix(points[i-1], "process.") || strings.HasPrefix(id, "journal.") || i%25 == 0
		if !near {
			continue
		}
		tried++
		h := newGatewaySetup(t)
		before := h.furnish()
		txn, _ := h.killAt(i+1, everything())
		h.after()
		rec, err := h.rt.Recover(t.Context())
		require.NoError(t, err, "killed at %d, %s", i+1, id)
		as := map[string]revert.Phase{"process.keep": "", "process.hold": "", "process.tell": revert.PhaseUnknown, "process.told": revert.PhaseDone}
		if want, ok := as[id]; ok && want == "" {
			require.Empty(t, rec.Settled, "it had not begun")
		} else if ok {
			require.Len(t, rec.Settled, 1)
			require.Equal(t, want, rec.Settled[0].Outcome, "%s: %s", id, rec.Settled[0].Why)
		}
		rep, err := h.rt.Revert(t.Context(), txn, revert.Options{})
		require.NoError(t, err, "killed at %d, %s: %v", i+1, id, rep.NotReverted())
		require.Equal(t, before, h.looks(), "killed at %d, %s", i+1, id)
	}
	require.Greater(t, tried, 10, said)
}

// TestFoldersKilled: the gateway is killed while a server is at a call. What the server did is found by the copy that was made
// before; it is unknown, since others may have been at it since, and a person reverts it: byte for byte.
func TestFoldersKilled(t *testing.T) {
	for name, test := range map[string]struct {
		deeds   []diskStep
		changed bool
	}{
		"before it did anything": {[]diskStep{{Do: "kill"}}, false},
		"half-way":               {append(everything(), diskStep{Do: "kill"}, diskStep{"write", "late.txt", "late"}, diskStep{"write", "over", ""}), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newGatewaySetup(t)
			before := h.furnish()
			txn, _ := h.killAt(0, test.deeds)
			if test.changed {
				h.awaits("over")
			}
			h.after()
			// A call in between has a copy of its own.
			out := h.call("d__act", do("", diskStep{"write", "between", "1"}, diskStep{"remove", "between", ""}))
			require.Equal(t, tool.StatusDone, out.Status, out.Text)

			rec, err := h.rt.Recover(t.Context())
			require.NoError(t, err)
			require.Len(t, rec.Settled, 1)
			if !test.changed {
				require.Equal(t, revert.PhaseFailed, rec.Settled[0].Outcome, rec.Settled[0].Why)
				require.Equal(t, before, h.looks())
				return
			}
			require.Equal(t, revert.PhaseUnknown, rec.Settled[0].Outcome)
			require.Contains(t, rec.Settled[0].Why, "24 files differ from before")
			again, err := h.rt.Recover(t.Context())
			require.NoError(t, err)
			require.Empty(t, again.Settled)

			h.put("new.txt", "mine")
			rep, err := h.rt.Revert(t.Context(), txn, revert.Options{})
			require.ErrorIs(t, err, agent.ErrPartialRevert)
			require.Len(t, rep.NotReverted(), 1)
			require.Equal(t, "mine", h.get("new.txt"))
			require.NoError(t, os.Remove(filepath.Join(h.dir, "new.txt")))
			require.Equal(t, before, h.looks())
			left, err := os.ReadDir(h.kept.Dir)
			require.NoError(t, err)
			require.Len(t, left, 2, "the lock, and the copy of the last call: %v", left)
		})
	}
}
