package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// killedProcess is what a process that will be killed is told.
type killedProcess struct {
	State, URL, Allow string
	Keys, Replays     bool
	At                string // the point that is counted from, such as web.sent:2; empty: the start
	ExitAfter         int    // so many points later
}

func TestMain(m *testing.M) {
	if text := os.Getenv("REMIT_DOOMED"); text != "" {
		var d killedProcess
		if err := errors.Join(json.Unmarshal([]byte(text), &d), d.run()); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run makes an item whose name the service chooses, and changes and deletes others.
func (d killedProcess) run() error {
	h := hosttest.New(uint64(os.Getpid()))
	left, from := d.ExitAfter, 0
	if id, n, ok := strings.Cut(d.At, ":"); ok {
		from = int(n[0] - '0')
		d.At = id
	}
	h.OnPoint = func(id string) error {
		if from > 0 && id == d.At {
			from--
		}
		if from > 0 {
			return nil
		}
		if left--; left == 0 {
			if err := kill(); err != nil {
				return err
			}
		}
		return nil
	}
	ctx := context.Background()
	j, err := sqlite.Open(ctx, d.State)
	if err != nil {
		return err
	}
	s := &service{keys: d.Keys, replays: d.Replays}
	rt, err := agent.New(append(s.parts(d.URL, d.Allow), agent.Host(h), agent.Journal(j))...)
	if err != nil {
		return err
	}
	session, err := rt.Session(ctx, perm.Principal{ID: "agent"})
	if err != nil {
		return err
	}
	tx, err := session.Begin(ctx)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		args tool.Args
	}{
		{"item_create", tool.Args{"name": "a"}}, {"item_put", tool.Args{"id": "own", "name": "b"}}, {"item_put", tool.Args{"id": "old", "name": "c"}},
	} {
		if _, err := tx.Invoke(ctx, c.name, c.args); err != nil {
			return err
		}
	}
	return errors.Join(tx.Commit(ctx), rt.Close(), j.Close())
}

func kill() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err == nil {
		select {}
	}
	return err
}

// points are where a process is killed: around each request that has an effect, and
// in the long mode everywhere.
func points(how killedProcess) (all []killedProcess) {
	add := func(at string, die int) {
		d := how
		d.At, d.ExitAfter = at, die
		all = append(all, d)
	}
	if statcheck.Whole() {
		for die := 1; die < 1000; die++ {
			add("", die)
		}
		return all
	}
	for n := range 3 {
		add(fmt.Sprintf("web.send:%d", n+1), 1)
		for after := range 3 {
			add(fmt.Sprintf("web.sent:%d", n+1), after+1)
		}
	}
	return all
}

// TestKilledAnywhere kills a process at its scheduling points, and reverts
// what it did from the journal alone. The service is then as before, where it can be
// asked what a key made, or answers a repeated key; where it can do neither, what is
// left is said to be unknown. No request that has an effect is ever sent twice.
func TestKilledAnywhere(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, how := range map[string]killedProcess{"keys": {Keys: true}, "replays": {Replays: true}, "neither": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unknown, killed := 0, 0
			for _, d := range points(how) {
				s := newService(t, func(s *service) { s.keys, s.replays, s.late = how.Keys, how.Replays, time.Nanosecond })
				s.holding("old", map[string]any{"name": "before"})
				d.State, d.URL, d.Allow = t.TempDir(), s.URL, s.Listener.Addr().String()
				text, err := json.Marshal(d)
				require.NoError(t, err)
				cmd := exec.Command(self)
				cmd.Env = append(os.Environ(), "REMIT_DOOMED="+string(text))
				out, err := cmd.CombinedOutput()
				if err == nil {
					break
				}
				var exit *exec.ExitError
				require.True(t, errors.As(err, &exit) && exit.ExitCode() == -1, "%v\n%s", err, out)
				killed++
				if s.recovered(t, d.State) {
					unknown++
				}
				posts := strings.Count(s.done(), "POST")
				require.LessOrEqual(t, posts, 1, "killed at %s %d: %s", d.At, d.ExitAfter, s.done())
				require.LessOrEqual(t, strings.Count(strings.Join(s.requests(), "\n"), "PUT /items/own"), 1)
			}
			require.GreaterOrEqual(t, killed, 12)
			t.Logf("killed %d times, %d times left unknown", killed, unknown)
			if name == "neither" {
				require.Positive(t, unknown, "the test would see one")
			} else {
				require.Zero(t, unknown)
			}
		})
	}
}

// recovered reverts what a dead process left, and reports whether something
// unknown is left at the service.
func (s *service) recovered(t *testing.T, state string) (unknown bool) {
	j, err := sqlite.Open(t.Context(), state)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	rt, err := agent.New(append(s.parts(s.URL, s.Listener.Addr().String()), agent.Journal(j), agent.OnAbandoned(agent.RevertAbandoned))...)
	require.NoError(t, err)
	defer rt.Close()
	_, err = rt.Recover(t.Context())
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		require.NoError(t, err)
	}
	for e, err := range j.Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		require.NoError(t, err)
		txn, err := revert.Load(t.Context(), j, e.Header.Txn)
		require.NoError(t, err)
		if txn.State() == revert.TxnCommitted { // died after the last of it
			_, err := rt.Revert(t.Context(), txn.ID, revert.Options{})
			require.NoError(t, err)
			txn, err = revert.Load(t.Context(), j, txn.ID)
			require.NoError(t, err)
		}
		if txn.Reverts == "" && txn.State() == revert.TxnRevertedPartial {
			unknown = true
		}
	}
	rep, err := revert.Fsck(t.Context(), j, revert.FsckOptions{})
	require.NoError(t, err)
	require.NoError(t, rep.Err())
	if !unknown {
		require.JSONEq(t, `{"old":{"id":"old","name":"before"}}`, s.state(), s.done()+strconv.Quote(strings.Join(s.requests(), ", ")))
	}
	return unknown
}

// TestKilledAndTheirs kills an agent before it receives the response. Recovery
// finds the created item by its key. The runtime keeps the item if another
// client changed it after the recovery, or changed the sent members before.
func TestKilledAndTheirs(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		soon, late map[string]any // members that another client changes before the recovery, or after it
		want       effect.Outcome
	}{
		"by nobody":                      {nil, nil, effect.Restored},
		"what was sent, soon":            {map[string]any{"name": "theirs"}, nil, effect.Unknown},
		"what was sent, late":            {nil, map[string]any{"name": "theirs"}, effect.Conflict},
		"beside what was sent":           {nil, map[string]any{"size": 4}, effect.Conflict},
		"beside it, too soon to be seen": {map[string]any{"size": 4}, nil, effect.Restored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, nil)
			s.holding("old", map[string]any{"name": "before"})
			d := killedProcess{State: t.TempDir(), URL: s.URL, Allow: s.Listener.Addr().String(), Keys: true, At: "web.sent:1", ExitAfter: 1}
			text, err := json.Marshal(d)
			require.NoError(t, err)
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "REMIT_DOOMED="+string(text))
			require.Error(t, cmd.Run())
			change := func(to map[string]any) {
				s.foreign(func() {
					for name, value := range to {
						s.items["i1"][name] = value
						s.rev["i1"]++
					}
				})
			}
			change(test.soon)
			j, err := sqlite.Open(t.Context(), d.State)
			require.NoError(t, err)
			defer func() { require.NoError(t, j.Close()) }()
			rt := runtimeOf(t, s, agent.Journal(j))
			found, err := rt.Recover(t.Context())
			require.NoError(t, err)
			require.Len(t, found.Abandoned, 1)
			change(test.late)
			before := s.state()
			rep, err := rt.Revert(t.Context(), found.Abandoned[0], revert.Options{})
			require.Len(t, rep.Items, 1)
			require.Equal(t, test.want, rep.Items[0].Outcome, "%+v", rep)
			if test.want == effect.Restored {
				require.NoError(t, err)
				require.JSONEq(t, `{"old":{"id":"old","name":"before"}}`, s.state())
				return
			}
			require.ErrorIs(t, err, agent.ErrPartialRevert)
			require.Equal(t, before, s.state())
		})
	}
}
