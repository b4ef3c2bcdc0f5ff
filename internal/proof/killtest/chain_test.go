//go:build linux

package killtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/remit-dev/remit/internal/host"
)

// chain is a sequence of killed processes: one that works, and others that are
// killed while they recover its work. The last process is not killed.
type chain struct {
	seed     uint64
	r        *rand.Rand
	dir      string
	service  *service
	lab      *testEnv
	order    order
	before   map[string]string
	output   string // output of all processes
	blind    bool   // a process could not read everything, so some outcomes stay unknown
	kills    int
	killedAt string   // the point at which the last process was killed; empty: by time
	hit      []string // killed processes and their points
}

// stage is one process of a chain.
type stage struct {
	does  string
	at    int           // the point; 0: by time
	named string        // the only points that at counts; empty: all
	when  time.Duration // with at 0: the time
}

func (s stage) String() string {
	if s.named != "" {
		return fmt.Sprintf("%s killed at point %d of %s", s.does, s.at, s.named)
	}
	if s.at > 0 {
		return fmt.Sprintf("%s killed at point %d", s.does, s.at)
	}
	return fmt.Sprintf("%s killed after %v", s.does, s.when)
}

// newChain returns a chain with its own world. One of eight is on the ordinary
// disk.
func (l *testEnv) newChain(seed uint64) (c *chain, err error) {
	c = &chain{seed: seed, r: rand.New(rand.NewPCG(seed, 5)), lab: l}
	base := l.memory
	if seed%8 == 0 {
		base = l.disk
	}
	if c.dir, err = os.MkdirTemp(base, "chain-"); err != nil {
		return nil, err
	}
	kind := l.kind(seed)
	if err := createWorkspace(c.dir, kind.workers); err != nil {
		return nil, err
	}
	c.service = newService()
	c.order = order{Dir: c.dir, URL: c.service.URL, Allow: c.service.Listener.Addr().String(), Plan: newPlan(c.r, kind.workers, kind.calls, kind.sandbox)}
	if kind.sandbox {
		c.order.Shim = l.self
	}
	c.before, err = look(c.dir)
	return c, err
}

func (c *chain) end() {
	c.service.Close()
	_ = os.RemoveAll(c.dir)
}

// stages returns the processes to kill: one at work, and up to three that
// recover, revert or redo its work.
func (c *chain) stages() []stage {
	k := c.lab.kind(c.seed)
	work := c.at("work", k)
	// Each point is used in turn, in an order of its own. The work differs from
	// plan to plan, and so does the meaning of a number: each name is used in
	// turn as well. The rest is random.
	points := k.points["work"]
	turn, names := int(c.seed)/len(c.lab.kinds), slices.Compact(slices.Sorted(slices.Values(points)))
	switch after := turn - len(points); {
	case after < 0:
		work.at = 1 + turn*stride%len(points)
	case after%2 == 0:
		work = stage{does: "work", at: 1, named: names[after/2%len(names)]}
	}
	all := []stage{work}
	for range 1 + c.r.IntN(3) {
		does := []string{"recover", "revert", "revert", "revert", "redo"}[c.r.IntN(5)]
		all = append(all, c.at(does, k))
	}
	return all
}

// stride is coprime to the number of points if that is smaller.
const stride = 4999

// at chooses where a process is killed: three of four at a point, the others by
// time. After a kill there is less work than without one, and no work for a
// recovery without one.
func (c *chain) at(does string, k *workKind) stage {
	if c.r.IntN(4) == 0 {
		return stage{does: does, when: time.Duration(c.r.Int64N(int64(k.took[does]) + 1))}
	}
	n := len(k.points[does])
	switch {
	case does == "recover":
		n = 8
	case does != "work":
		n = min(n, []int{10, 50, n}[c.r.IntN(3)])
	}
	return stage{does: does, at: 1 + c.r.IntN(n)}
}

// run runs the chain, and returns the problems at its end.
func (c *chain) run(ctx context.Context) error {
	var done []string
	for _, s := range c.stages() {
		killed, err := c.stage(s)
		done = append(done, s.String())
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(done, ", "), err)
		}
		if killed {
			c.kills++
			c.hit = append(c.hit, s.does+" "+c.killedAt)
		}
	}
	if err := c.judge(ctx); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(done, ", "), err)
	}
	return nil
}

// stage runs one process. It may end before it is killed.
func (c *chain) stage(s stage) (killed bool, err error) {
	o := c.order
	o.Does, o.At, o.Named = s.does, s.at, s.named
	cmd, out, err := c.lab.command(o)
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if s.at == 0 {
		stop := time.AfterFunc(s.when, func() { _ = cmd.Process.Kill() }) // fails only if the process has ended
		defer stop.Stop()
	}
	err = cmd.Wait()
	c.service.quiet()
	said := out.String()
	said, c.killedAt, _ = strings.Cut(said, "point ")
	c.output, c.killedAt = c.output+said, strings.TrimSpace(c.killedAt)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if is, ok := exit.Sys().(syscall.WaitStatus); ok && is.Signaled() && is.Signal() == syscall.SIGKILL {
			return true, nil
		}
		err = fmt.Errorf("%s ended by itself: %w: %s", s.does, err, cmd.Stderr)
	}
	return false, err
}

// command returns a process that executes an order.
func (l *testEnv) command(o order) (cmd *exec.Cmd, out *bytes.Buffer, err error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	cmd, out = exec.Command(l.self), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), orderEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = out, &bytes.Buffer{}
	return cmd, out, nil
}

// judge runs a last process that recovers everything, and compares the world
// with its output and with all earlier output.
func (c *chain) judge(ctx context.Context) error {
	last := c.order
	last.Quiet = true
	p, err := last.start(ctx, host.Real())
	if err != nil {
		return fmt.Errorf("it does not start: %w", err)
	}
	defer func() { _ = p.close() }()
	found, err := p.rt.Recover(ctx)
	if err != nil || len(found.Failed) > 0 {
		return fmt.Errorf("recover: %v %w", found.Failed, err)
	}
	if err := p.all(ctx, "revert"); err != nil {
		return err
	}
	if err := c.oracle(ctx, p); err != nil {
		return err
	}
	once, err := c.everything()
	if err != nil {
		return err
	}
	if _, err := p.rt.Recover(ctx); err != nil {
		return fmt.Errorf("recover again: %w", err)
	}
	if err := p.all(ctx, "revert"); err != nil {
		return fmt.Errorf("once more: %w", err)
	}
	twice, err := c.everything()
	if err == nil && difference(once, twice) != "" {
		err = fmt.Errorf("what is done twice is not as if it were done once: %s", difference(once, twice))
	}
	return errors.Join(err, c.fsck(ctx))
}

// everything returns files, rows and the content of the service.
func (c *chain) everything() (map[string]string, error) {
	m, err := look(c.dir)
	items, made, posts := c.service.now()
	m["service"] = fmt.Sprint(items, made, posts)
	return m, err
}

// place returns the folder for chains: in memory if possible, since a kill does
// not lose data that the system has received.
func place(base string) (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "remit-kill-"); err == nil {
		return dir, nil
	}
	return filepath.Abs(base)
}
