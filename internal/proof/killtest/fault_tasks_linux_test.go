package killtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

// trap reports the system calls of this process to the parent, over the
// inherited descriptor.
func trap() error { return reportCalls(3) }

// faultTask is the task of a process while one of its system calls fails.
type faultTask struct {
	does     string
	steps    []step
	killedAt int  // with recover: the point at which the previous process was killed
	fresh    bool // the journal is created first
}

func (s faultTask) String() string {
	name := s.does
	for _, do := range s.steps {
		name += "_" + do.Tool
	}
	if s.fresh {
		name += "_fresh"
	}
	if s.killedAt > 0 {
		name += fmt.Sprint("_after_", s.killedAt)
	}
	return name
}

// faultTasks returns one call of each kind, in every task of a process.
func faultTasks(sandbox bool) (all []faultTask) {
	works := [][]step{}
	first := step{"file_write", tool.Args{"path": "w0/first.txt", "content": "first"}}
	all = append(all, faultTask{does: "work", steps: []step{first, {Tool: "commit"}}, fresh: true})
	for _, do := range menuOf(0, sandbox) {
		switch do.Tool {
		case "ping", "plain", "file_copy", "change":
			continue
		}
		works = append(works, []step{do, {Tool: "commit"}})
	}
	for _, steps := range works {
		for _, does := range []string{"work", "revert", "redo"} {
			if does != "redo" || steps[0].Tool != "keyed" && steps[0].Tool != "mail" {
				all = append(all, faultTask{does: does, steps: steps})
			}
		}
		for _, dies := range []int{35, 55} {
			all = append(all, faultTask{does: "recover", steps: steps, killedAt: dies})
		}
	}
	return all
}

// prepare creates a world in which the process can do its task.
func (s faultTask) prepare(ctx context.Context, l *testEnv, seed uint64) (c *chain, err error) {
	if c, err = l.newChain(seed); err != nil {
		return nil, err
	}
	c.order.Plan = plan{s.steps}
	if s.fresh {
		return c, nil
	}
	j, err := sqlite.Open(ctx, filepath.Join(c.dir, "state"))
	if err == nil {
		err = j.Close()
	}
	if s.does == "work" || err != nil {
		return c, err
	}
	if s.does == "recover" {
		if _, err := c.stage(stage{does: "work", at: s.killedAt}); err != nil {
			return c, err
		}
		return c, nil
	}
	quiet := c.order
	quiet.Quiet = true
	p, err := quiet.start(ctx, host.Real())
	if err != nil {
		return c, err
	}
	err = p.work(ctx, c.order.Plan)
	if err == nil && s.does == "redo" {
		err = p.all(ctx, "revert")
	}
	return c, errors.Join(err, p.close())
}

// result is the result of a run.
type result struct {
	counts     map[string]int
	struck     string
	before     string // output before the fault
	after      string // output after the fault
	complained string
	code       int
	idle       bool
	dirty      []string // changed and not synced after the fault, below the folder
}

// strike runs the process with a fault; nil: none.
func (s faultTask) strike(ctx context.Context, l *testEnv, c *chain, f *fault, at int) (r result, err error) {
	o := c.order
	o.Does, o.Trap, o.Goes = s.does, true, true
	cmd, _, err := l.command(o)
	if err != nil {
		return r, err
	}
	said, err := os.CreateTemp(l.memory, "said-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, said.Close(), os.Remove(said.Name())) }()
	cmd.Stdout = said
	cmd.Env = append(cmd.Env, "GODEBUG=asyncpreemptoff=1")
	size := int64(0)
	d := &director{dir: c.dir, fault: f, at: at, counts: map[string]int{}, own: map[uint32]bool{}, dirty: map[string]bool{}, when: func() {
		if info, err := said.Stat(); err == nil {
			size = info.Size()
		}
	}}
	if err := d.direct(cmd); err != nil {
		return r, err
	}
	c.service.quiet()
	all, err := os.ReadFile(said.Name())
	if err != nil {
		return r, err
	}
	c.output += string(all)
	var dirty []string
	for name := range d.dirty {
		dirty = append(dirty, strings.TrimPrefix(name, c.dir+"/"))
	}
	return result{d.counts, d.struck, string(all[:size]), string(all[size:]), fmt.Sprint(cmd.Stderr), cmd.ProcessState.ExitCode(), d.idle, dirty}, ctx.Err()
}

// direct starts a child and decides its calls until it has ended.
func (d *director) direct(cmd *exec.Cmd) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	cmd.ExtraFiles = []*os.File{theirs}
	err = cmd.Start()
	_ = theirs.Close()
	defer func() { _ = unix.Close(pair[0]) }()
	if err != nil {
		return err
	}
	d.pid = cmd.Process.Pid
	fd, err := listener(pair[0])
	if err == nil && fd >= 0 {
		err = errors.Join(serveReports(fd, d.decide), unix.Close(fd))
	}
	if err != nil {
		_ = cmd.Process.Kill()
	}
	var exit *exec.ExitError
	if ended := cmd.Wait(); !errors.As(ended, &exit) {
		err = errors.Join(err, ended)
	}
	return err
}

// judge returns what is wrong with the reaction of a process to a fault.
func (s faultTask) judge(ctx context.Context, c *chain, f *fault, r result) error {
	text := strings.ToLower(r.complained)
	switch {
	case r.code != 0 && r.code != 1, strings.Contains(text, "panic"), strings.Contains(text, "goroutine "):
		return fmt.Errorf("it ended with %d: %s", r.code, r.complained)
	case r.code == 1 && strings.TrimSpace(text) == "":
		return errors.New("it ended with an error, and did not say which")
	case f.name == "EINTR" && text != "" && !strings.HasPrefix(r.struck, "sync"): // a sync may return it
		return fmt.Errorf("an interruption is no error: %s", r.complained)
	}
	if text != "" && !clear(text) {
		return fmt.Errorf("nobody can tell from this what went wrong: %s", r.complained)
	}
	if f.name == "sync" && !r.idle {
		if err := s.unkept(r); err != nil {
			return err
		}
	}
	c.blind = true
	return c.judge(ctx)
}

// clear reports whether a text names the cause.
func clear(text string) bool {
	for _, says := range []string{"input/output error", "i/o error", "no space left", "too many open files", "disk is full", "short write", "out of memory", "unable to open"} {
		if strings.Contains(text, says) {
			return true
		}
	}
	return false
}

// unkept finds output after a failed sync that depends on it: for the journal,
// all output; otherwise the call that used it.
func (s faultTask) unkept(r result) error {
	if strings.HasPrefix(r.struck, "sync of state/journal.db ") || strings.HasPrefix(r.struck, "sync of app.db") {
		return nil // the log was synced before, and is kept; or the database's owner decides on its durability
	}
	journal := strings.HasPrefix(r.struck, "sync of state")
	for line := range strings.Lines(r.after) {
		words := strings.Fields(line)
		switch words[0] {
		case "head":
		case "call":
			if words[3] == "done" || words[3] == "held" {
				return fmt.Errorf("after a sync had failed somebody was told %q", line)
			}
		default:
			if journal {
				return fmt.Errorf("after a sync of the journal had failed somebody was told %q", line)
			}
		}
		if !journal {
			return nil
		}
	}
	return nil
}

// TestFaults makes one system call of a process fail, in each possible way,
// while it works, commits, reverts, redoes or recovers. The process does not
// panic, names the cause, and promises nothing after a failed sync. The next
// process recovers everything.
//
// An ordinary run uses a sample; REMIT_PROVE uses each call of each kind.
// REMIT_FAULT names one: the task, the fault, and the number of the failing
// call, or a common prefix.
func TestFaults(t *testing.T) {
	if elsewhere(t) {
		return
	}
	l := &testEnv{self: self(), disk: t.TempDir()}
	var err error
	l.memory, err = place(l.disk)
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(l.memory) })
	sandbox := sandboxed(t, l)
	l.kinds = []*workKind{{workers: 1, calls: 1, sandbox: sandbox}}
	all := faultTasks(sandbox)
	if !canTrap(t, l, all[0]) {
		t.Skip("this kernel does not report system calls to a parent")
	}
	tries := l.tries(t, all)
	t.Log(len(tries), "runs:", kindsOf(tries))
	var mu sync.Mutex
	violations, next, told := 0, 0, map[string]int{}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				mu.Lock()
				n := next
				next++
				mu.Unlock()
				if n >= len(tries) {
					return
				}
				what, err := tries[n].run(t.Context(), l)
				mu.Lock()
				if told[tries[n].fault.name+": "+what]++; (n+1)%1000 == 0 { // shows progress
					t.Logf("%d of %d", n+1, len(tries))
				}
				if err != nil {
					violations++
					t.Errorf("%s: %v\nREMIT_FAULT=%s go test ./internal/proof/killtest -run '^TestFaults$'", what, err, tries[n])
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Log(told)
	t.Logf("proved: I/O that fails: %d runs, %d violations", len(tries), violations)
}

// try is one run.
type try struct {
	faultTask
	fault *fault
	at    int
}

func (y try) String() string { return fmt.Sprintf("%s:%s:%d", y.faultTask, y.fault.name, y.at) }

// run returns how it ended, in a word, and what is wrong.
func (y try) run(ctx context.Context, l *testEnv) (string, error) {
	c, err := y.prepare(ctx, l, 1)
	if c != nil {
		defer c.end()
	}
	if err != nil {
		return "prepare", err
	}
	r, err := y.strike(ctx, l, c, y.fault, y.at)
	if err != nil {
		return "strike", err
	}
	what := "told"
	if r.complained == "" {
		what = "of no consequence"
	}
	if r.struck == "" {
		what = "not reached"
	}
	if err := y.judge(ctx, c, y.fault, r); err != nil {
		return what, fmt.Errorf("%s: %w\nsaid after it: %s\ncomplained: %s", r.struck, err, r.after, r.complained)
	}
	return what, nil
}

func kindsOf(tries []try) map[string]int {
	m := map[string]int{}
	for _, y := range tries {
		m[y.fault.name]++
		m[y.does]++
		m[y.steps[0].Tool]++
	}
	return m
}

// canTrap reports whether a child can report its calls here.
func canTrap(t *testing.T, l *testEnv, s faultTask) bool {
	c, err := s.prepare(t.Context(), l, 1)
	require.NoError(t, err)
	defer c.end()
	r, err := s.strike(t.Context(), l, c, nil, 0)
	require.NoError(t, err)
	if strings.Contains(r.complained, errNoTrap.Error()) {
		return false
	}
	require.Zero(t, r.code, r.complained)
	require.Positive(t, r.counts["sync"])
	return true
}

// control runs a task without a fault, and counts the calls that could fail.
func (l *testEnv) control(t *testing.T, s faultTask) map[string]int {
	c, err := s.prepare(t.Context(), l, 1)
	require.NoError(t, err, s)
	defer c.end()
	r, err := s.strike(t.Context(), l, c, nil, 0)
	require.NoError(t, err, s)
	require.Zero(t, r.code, "%s: %s", s, r.complained)
	require.NoError(t, c.judge(t.Context()), s)
	return r.counts
}

// like reports whether most calls of a task equal those of another task: one in
// eight of them fails, in each way.
func (s faultTask) like() bool {
	switch do := s.steps[0]; {
	case s.fresh:
		return false
	case do.Tool == "file_delete", do.Tool == "shell_run":
		return s.does == "redo" || s.does == "recover"
	case do.Tool == "file_edit", do.Tool == "sql_execute":
		return s.does == "redo" || !strings.Contains(fmt.Sprint(do.Args), "UPDATE") && do.Tool == "sql_execute"
	}
	return true
}

// tries returns the runs of this test.
func (l *testEnv) tries(t *testing.T, all []faultTask) (tries []try) {
	only, prove := os.Getenv("REMIT_FAULT"), os.Getenv("REMIT_PROVE") != ""
	if only == "" && !prove { // a sample of a few of them
		r := rand.New(rand.NewPCG(seedOf(t), 4))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:3]
	}
	for _, s := range all {
		if only != "" && only != s.String() && !strings.HasPrefix(only, s.String()+":") {
			continue
		}
		counts, every := l.control(t, s), 1
		if only == "" && s.like() {
			every = 8
		}
		for i := range faults {
			for at := 1 + i%every; at <= counts[faults[i].name]; at += every {
				if y := (try{s, &faults[i], at}); strings.HasPrefix(y.String()+":", only+":") || only == "" {
					tries = append(tries, y)
				}
			}
		}
	}
	if only == "" && !prove {
		r := rand.New(rand.NewPCG(seedOf(t), 5))
		r.Shuffle(len(tries), func(i, j int) { tries[i], tries[j] = tries[j], tries[i] })
		tries = tries[:min(len(tries), 12)]
	}
	require.NotEmpty(t, tries, "REMIT_FAULT names none: %s", only)
	return tries
}
