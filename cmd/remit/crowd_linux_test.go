package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/serve"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// mostMemory is what the server may take at its peak, however many come.
const mostMemory = 512 << 20

// TestManySessions has many sessions at once on one server, in both ways of the protocol. Each has a secret, a folder and a model of what
// it did; one in twenty is somebody who tries to get at what is the others'. No answer may hold anything of another
// session, each attempt is refused in the way that it should be, what everybody did stands as they did it, and when all have left
// the server has no goroutine and no descriptor more than before they came. With REMIT_LONG it is 1,000 sessions with 100 calls
// each. REMIT_SEED repeats a run.
func TestManySessions(t *testing.T) {
	for _, through := range []string{"serve", "gateway"} {
		t.Run(through, func(t *testing.T) {
			if !statcheck.Whole() {
				t.Parallel() // it waits for those who are slow
			}
			sessions, calls := 60, 20
			switch {
			case statcheck.Whole():
				sessions, calls = 1000, 100
			case statcheck.Racing:
				sessions, calls = 40, 12
			}
			c := newClientGroup(t, through)
			c.tokens(sessions)
			s := c.start()
			c.visit(calls)
			s.isAsBefore()
			peak := s.end()
			c.check()
			for _, what := range c.violations {
				t.Error(what)
			}
			t.Logf("seed %d, %d kinds of attempts", c.seed, len(c.kinds))
			t.Logf("proved: MCP sessions at once (%s): %d calls of %d sessions and %d attempts on them in %d MiB, %d violations",
				through, c.calls, sessions, c.attempts, peak>>20, c.wrongs)
			if !statcheck.Racing { // which takes several times the memory
				require.Less(t, peak, int64(mostMemory))
			}
		})
	}
}

// mostOfJournal is how many descriptors its journal may have: two of each of its readers, and its writer's.
const mostOfJournal = 2*8 + 4

// clientGroup is everybody who is on one server.
type clientGroup struct {
	t       *testing.T
	seed    uint64
	through string // the command
	dir     string
	url     string
	all     []*visitor

	owners sync.Map // of ids that were told: the visitor's number

	mu              sync.Mutex
	violations      []string // the first ones
	wrongs          int
	calls, attempts int
	kinds           map[string]int
}

func newClientGroup(t *testing.T, through string) *clientGroup {
	c := &clientGroup{t: t, seed: killSeed(t), through: through, dir: t.TempDir(), kinds: map[string]int{}}
	require.NoError(t, os.Mkdir(c.at("ws"), 0o755))
	require.NoError(t, os.WriteFile(c.at("own.rego"), []byte(ownFolders), 0o600))
	peer, err := exec.LookPath("peer")
	require.NoError(t, err)
	config := fmt.Sprintf(`{"mcpServers": {"peer": {"command": %q}}, "remit": {"servers": {"peer": {"tools": {"echo": {"effectClass": "pure", "destination": "none"}}}}}}`, peer)
	require.NoError(t, os.WriteFile(c.at("gateway.json"), []byte(config), 0o600))
	return c
}

// ownFolders is the policy beside that of the workspace: each principal has a folder, and a person reads what is written as a letter.
const ownFolders = `package remit

import data.remit.lib

deny contains "each has a folder of its own" if {
	input.access.resource.kind == "file"
	not mine
	not top
}

mine if lib.below("workspace", input.principal.id)

top if {
	input.access.action == "list"
	not input.access.resource.path
}

ask contains "a letter is read by a person first" if {
	lib.changes
	lib.below("workspace", concat("/", [input.principal.id, "letters"]))
}
`

func (c *clientGroup) at(name string) string { return filepath.Join(c.dir, name) }

// flags are those of any command of the crowd's server.
func (c *clientGroup) flags() []string {
	f := append(c.sessionFlags(), "--policy", c.at("own.rego"))
	for _, name := range []string{"workspace", "lib"} {
		f = append(f, "--policy", filepath.Join("..", "..", "policies", name))
	}
	return f
}

// sessionFlags are those that decide what a session holds.
func (c *clientGroup) sessionFlags() []string {
	f := []string{"--workspace", c.at("ws"), "--state", c.at("state")}
	if c.through == "gateway" {
		f = append(f, "--config", c.at("gateway.json"))
	}
	return f
}

// tokens makes the sessions.
func (c *clientGroup) tokens(n int) {
	for i := range n {
		who := fmt.Sprintf("p%04d", i)
		require.NoError(c.t, os.MkdirAll(filepath.Join(c.at("ws"), who, "letters"), 0o755))
		c.all = append(c.all, newVisitor(c, i, who))
	}
	var errs bytes.Buffer
	a, f := cli.NewApp(testEnv(nil, io.Discard, &errs)), &startup.Flags{}
	cmd := &cobra.Command{}
	serve.AddSessionFlags(a, cmd, f)
	f.OnAsk = "deny" // nothing is asked here
	require.NoError(c.t, cmd.ParseFlags(c.sessionFlags()))
	require.NoError(c.t, f.Check())
	rt, err := startup.Open(c.t.Context(), a, f)
	require.NoError(c.t, err, "%s", &errs)
	for _, v := range c.all {
		f.As = v.who
		in, err := serve.NewSession(c.t.Context(), rt.Runtime, f)
		require.NoError(c.t, err)
		v.token = in.Token()
		c.owners.Store(in.ID(), v.n)
	}
	require.NoError(c.t, rt.Close())
	require.NoError(c.t, a.Close())
}

// wrong notes what must not be.
func (c *clientGroup) wrong(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrongs++; len(c.violations) < 20 {
		c.violations = append(c.violations, fmt.Sprintf(format, args...))
	}
}

func (c *clientGroup) count(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == "" {
		c.calls++
		return
	}
	c.attempts++
	c.kinds[kind]++
}

// What an answer tells of a session: the ids of sessions, transactions and calls, and secrets, which name their owner.
var (
	idPattern     = regexp.MustCompile(`\b[stc]_[0-9a-z]{8,}\b`)
	secretPattern = regexp.MustCompile(`secret-(\d{4})-[0-9a-f]{16}`)
)

// see looks whether an answer holds anything of somebody else. What the request itself held is nothing new.
func (c *clientGroup) see(v *visitor, request, answer string) {
	for _, m := range secretPattern.FindAllStringSubmatch(answer, -1) {
		if n, err := strconv.Atoi(m[1]); (err != nil || n != v.n) && !strings.Contains(request, m[0]) {
			c.wrong("%s was told %s", v.who, m[0])
		}
	}
	for _, id := range idPattern.FindAllString(answer, -1) {
		if strings.Contains(request, id) {
			continue
		}
		if owner, known := c.owners.LoadOrStore(id, v.n); known && owner != v.n {
			c.wrong("%s was told %s, which is of p%04d: %s", v.who, id, owner, answer)
		}
	}
}

// visit has everybody come, work, wait for those who are up to no good, and leave.
func (c *clientGroup) visit(calls int) {
	var ready, hostile, all sync.WaitGroup
	for _, v := range c.all {
		if v.hostile() {
			hostile.Add(1)
		} else {
			ready.Add(1)
		}
		all.Go(func() {
			if v.hostile() {
				defer hostile.Done()
				v.arrive()
				ready.Wait()
				v.intrude(calls)
				return
			}
			v.settleIn()
			ready.Done()
			for done := 0; done < calls; {
				done += v.step()
			}
			hostile.Wait()
			v.settleUp()
		})
	}
	all.Wait()
	for _, v := range c.all {
		v.leave()
	}
}

// check compares what is left behind with what everybody did: the folders, and the journal.
func (c *clientGroup) check() {
	for _, v := range c.all {
		got := map[string]string{}
		root := filepath.Join(c.at("ws"), v.who)
		require.NoError(c.t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				var text []byte
				text, err = os.ReadFile(path)
				rel, _ := filepath.Rel(root, path)
				got[filepath.ToSlash(rel)] = string(text)
			}
			return err
		}))
		if !maps.Equal(v.files, got) {
			c.wrong("the folder of %s holds %q, want %q", v.who, got, v.files)
		}
	}
	j, err := sqlite.Open(c.t.Context(), c.at("state"))
	require.NoError(c.t, err)
	open, err := j.Unfinished(c.t.Context())
	require.NoError(c.t, err)
	for _, o := range open {
		left, err := revert.Load(c.t.Context(), j, o.Txn)
		require.NoError(c.t, err)
		if !slices.ContainsFunc(c.all, func(v *visitor) bool { return v.hostile() && v.session() == left.Session }) {
			c.wrong("transaction %s of session %s is still open", o.Txn, left.Session)
		}
	}
	for e, err := range j.Entries(c.t.Context(), journal.Query{Kinds: []record.Kind{record.KindBegun, record.KindStarted, record.KindAsked}}) {
		require.NoError(c.t, err)
		for _, id := range []string{e.Header.Txn, e.Header.Call} {
			owner, _ := c.owners.Load(id)
			if n, told := owner.(int); told && c.all[n].session() != e.Header.Session {
				c.wrong("p%04d was told %s, which is of session %s", owner, id, e.Header.Session)
			}
		}
	}
	require.NoError(c.t, j.Close())
	code, out := command(c.t, "fsck", "--workspace", c.at("ws"), "--state", c.at("state"))
	require.Zero(c.t, code, out)
}

// served is the process that serves.
type served struct {
	c      *clientGroup
	cmd    *exec.Cmd
	errs   bytes.Buffer
	count  string // socket
	before counted
}

// counted is what a process has.
type counted struct {
	goroutines, descriptors int // without those of the journal, which come as they are needed, up to a bound
	journal                 int
	open                    []string // descriptors
	stacks                  string
}

func (c *clientGroup) start() *served {
	program, err := exec.LookPath("counted")
	require.NoError(c.t, err)
	s := &served{c: c, count: c.at("count")}
	args := []string{c.through, "--http", "127.0.0.1:0", "--json"}
	if c.through == "gateway" {
		args = append(args, "--own-tools")
	}
	s.cmd = exec.Command(program, append(args, c.flags()...)...)
	s.cmd.Env = append(os.Environ(), "COUNTED="+s.count)
	s.cmd.Stderr = &s.errs
	out, err := s.cmd.StdoutPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, s.cmd.Start())
	c.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	require.NoError(c.t, err, "%s", &s.errs)
	var where serve.Listening
	require.NoError(c.t, json.Unmarshal(line, &where))
	c.url = where.URL
	warm := c.all[0]
	warm.arrive()
	warm.list()
	warm.leave()
	s.before = s.now()
	return s
}

// now asks the process how many goroutines it has, and the system for its descriptors.
func (s *served) now() (n counted) {
	c, err := net.Dial("unix", s.count)
	require.NoError(s.c.t, err, "%s", &s.errs)
	said, err := io.ReadAll(c)
	require.NoError(s.c.t, err)
	require.NoError(s.c.t, c.Close())
	first, stacks, _ := strings.Cut(string(said), "\n")
	n.goroutines, err = strconv.Atoi(first)
	require.NoError(s.c.t, err)
	n.stacks = stacks
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	require.NoError(s.c.t, err)
	for _, fd := range open {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", s.cmd.Process.Pid, fd.Name()))
		if n.open = append(n.open, name); strings.HasPrefix(name, s.c.at("state/journal.db")) {
			n.journal++
		}
	}
	n.descriptors = len(open) - n.journal
	return n
}

// isAsBefore waits until nothing is left of those who have gone.
func (s *served) isAsBefore() {
	for end := time.Now().Add(2 * time.Minute); ; {
		now := s.now()
		if now.goroutines <= s.before.goroutines && now.descriptors <= s.before.descriptors && now.journal <= mostOfJournal {
			return
		}
		if time.Now().After(end) {
			require.Fail(s.c.t, "something is left of those who have gone", "before there were %d goroutines and %d descriptors, now %d and %d\n%q\n%s",
				s.before.goroutines, s.before.descriptors, now.goroutines, now.descriptors, now.open, now.stacks)
		}
	}
}

// end ends the process as an administrator does, and says how much memory it took at most.
func (s *served) end() (peak int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	require.NoError(s.c.t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(s.c.t, m)
	peak, err = strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(s.c.t, err)
	require.NoError(s.c.t, s.cmd.Process.Signal(syscall.SIGTERM))
	err = s.cmd.Wait()
	require.NoError(s.c.t, err, "%s", &s.errs)
	if said := s.errs.String(); said != "" { // such as that a starved machine did not answer in time; what was wrong has been counted
		s.c.t.Logf("the server wrote %d lines, such as %.300s", strings.Count(said, "\n"), said)
	}
	return peak << 10
}
