package agent_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// stepper lets goroutines of a bubble go on one at a time, in an order that
// follows from its seed: each parks at every scheduling point of its host.
type stepper struct {
	mu     sync.Mutex // never held across a wait
	parked []chan struct{}
	off    bool
}

func (s *stepper) point(string) error {
	s.mu.Lock()
	if s.off {
		s.mu.Unlock()
		return nil
	}
	gate := make(chan struct{})
	s.parked = append(s.parked, gate)
	s.mu.Unlock()
	<-gate
	return nil
}

// run releases the parked goroutines one after the other until none is left. It
// returns the number of steps.
func (s *stepper) run(r *rand.Rand) (steps int) {
	for ; ; steps++ {
		synctest.Wait()
		s.mu.Lock()
		if len(s.parked) == 0 {
			s.off = true
			s.mu.Unlock()
			return steps
		}
		i := r.IntN(len(s.parked))
		gate := s.parked[i]
		s.parked = slices.Delete(s.parked, i, i+1)
		s.mu.Unlock()
		close(gate)
	}
}

// scribble is a call that writes files in its order; each content is written once.
type scribble struct {
	id     string
	tool   string
	writes [][2]string // file, content
	done   bool
}

// onTopOf is a call with all that wrote, after it, what it or one of these wrote.
func onTopOf(order []*scribble, first *scribble) map[string]bool {
	gone, touched := map[string]bool{}, map[string]bool{}
	for _, c := range order[slices.Index(order, first):] {
		on := c == first
		for _, w := range c.writes {
			on = on || touched[w[0]]
		}
		for _, w := range c.writes {
			touched[w[0]] = touched[w[0]] || on
		}
		if on {
			gone[c.id] = true
		}
	}
	return gone
}

// put is a tool that writes several files: "a.txt=x,b.txt=y".
func put(t *testing.T) tool.Tool {
	run := func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
		f, err := handle.Open(tc, "workspace")
		if err != nil {
			return "", err
		}
		for w := range strings.SplitSeq(in, ",") {
			name, content, _ := strings.Cut(w, "=")
			if err := f.Write(ctx, name, []byte(content), handle.WriteOptions{}); err != nil {
				return "", err
			}
		}
		return "ok", nil
	}
	tl, err := tool.CreateWith("put", "", anyWrite(), run, confined()...)
	return mustTool(t, tl, err)
}

func scribbles(r *rand.Rand) []*scribble {
	var calls []*scribble
	for i := range 2 + r.IntN(3) {
		c := &scribble{id: fmt.Sprint("c_", i), tool: "file_write"}
		n := 1
		if r.IntN(2) == 0 {
			c.tool, n = "put", 1+r.IntN(4)
		}
		for j := range n {
			c.writes = append(c.writes, [2]string{[]string{"a.txt", "b.txt", "new.txt"}[r.IntN(3)], fmt.Sprintf("%d.%d", i, j)})
		}
		calls = append(calls, c)
	}
	return calls
}

// model is what the files hold when these calls ran one after the other.
func model(before map[string]string, calls []*scribble, gone map[string]bool) map[string]string {
	world := maps.Clone(before)
	for _, c := range calls {
		for _, w := range c.writes {
			if c.done && !gone[c.id] {
				world[w[0]] = w[1]
			}
		}
	}
	return world
}

func texts(t *testing.T, dir string) map[string]string {
	m := map[string]string{}
	for _, name := range []string{"a.txt", "b.txt", "new.txt"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			m[name] = string(data)
		} else {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
	}
	return m
}

// serial sorts calls by their last change: a call keeps what it changed until it
// has ended, so of two that share a file one had ended before the other touched it.
func serial(t *testing.T, rt *agent.Runtime, txn string, calls []*scribble) []*scribble {
	var order []*scribble
	for e, err := range rt.Journal().Entries(t.Context(), journal.Query{Txn: txn, Kinds: []record.Kind{record.KindChanged}}) {
		require.NoError(t, err)
		i := slices.IndexFunc(calls, func(c *scribble) bool { return c.id == e.Header.Call })
		if i >= 0 {
			order = append(slices.DeleteFunc(order, func(c *scribble) bool { return c == calls[i] }), calls[i])
		}
	}
	return order
}

// TestInterleavedCalls steps parallel calls of one transaction through random
// interleavings. Each is verified by what it left itself, or refused without effect
// because it would wait in a circle; the files hold what some order one after the
// other gives; any call can be reverted with those on top, and then all the rest.
func TestInterleavedCalls(t *testing.T) {
	seeds := uint64(max(statcheck.Size(40, 2000), 40)) // fewer do not hold every case
	refused, shared := 0, 0
	for seed := range seeds {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha"), 0o640))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "b.txt"), []byte("beta"), 0o600))
		whole, before := tree(t, dir), texts(t, dir)
		r := rand.New(rand.NewPCG(seed, 3))
		calls := scribbles(r)
		synctest.Test(t, func(t *testing.T) {
			steps := &stepper{}
			h := hosttest.New(seed)
			rt := filesOn(t, dir, agent.Host(h), agent.Tools(put(t)))
			s := newSession(t, rt)
			tx := begin(t, s)
			h.OnPoint = steps.point
			var all sync.WaitGroup
			for _, c := range calls {
				all.Go(func() {
					var input any = tool.Args{"path": c.writes[0][0], "content": c.writes[0][1]}
					if c.tool == "put" {
						var parts []string
						for _, w := range c.writes {
							parts = append(parts, w[0]+"="+w[1])
						}
						input = strings.Join(parts, ",")
					}
					out, err := tx.Invoke(t.Context(), c.tool, input, agent.WithCallID(c.id))
					c.id, c.done = out.Call, err == nil
					if err != nil {
						require.Equal(t, tool.StatusFailed, out.Status, "seed %d: %+v", seed, out)
						require.Contains(t, out.Error.Why, "waits for this one")
						require.Contains(t, []string{"", "all"}, out.Reverted)
					}
				})
			}
			require.Greater(t, steps.run(r), 20)
			all.Wait()
			order := serial(t, rt, tx.ID(), calls)
			require.Equal(t, model(before, order, nil), texts(t, dir), "seed %d", seed)
			for _, c := range calls {
				if !c.done {
					refused++
				}
			}
			if r.IntN(2) == 0 {
				require.NoError(t, tx.Commit(t.Context()))
			}
			gone := map[string]bool{}
			order = slices.DeleteFunc(order, func(c *scribble) bool { return !c.done })
			if len(order) > 0 {
				first := order[r.IntN(len(order))]
				gone = onTopOf(order, first)
				shared += len(gone) - 1
				rep, err := s.Revert(t.Context(), first.id, revert.Options{})
				require.NoError(t, err, "seed %d: %+v", seed, rep)
			}
			require.Equal(t, model(before, order, gone), texts(t, dir), "seed %d, without %v", seed, gone)
			rep, err := s.Revert(t.Context(), tx.ID(), revert.Options{})
			require.NoError(t, err, "seed %d: %+v", seed, rep)
		})
		require.Equal(t, whole, tree(t, dir), "seed %d", seed)
	}
	require.Positive(t, refused, "some would have waited in a circle")
	require.Greater(t, shared, 10, "some lay on others")
}
