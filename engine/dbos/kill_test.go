package dbosagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
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
	"testing/fstest"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	dbosagent "github.com/remit-dev/remit/engine/dbos"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/pgtest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

const rules = `package remit

allow contains "everything" if true
`

const jobEnv = "REMIT_TEST_JOB"

// job is what a process of the test does.
type job struct {
	Database string
	Dir      string // has ws, the workspace, and state, the journal
	Workflow string
	Kill     int    // dies before its nth point; 0: never
	Trace    string // where it writes its points
	Fails    bool   // the function ends with an error
	About    string // added to the description of the tool count
	Ping     bool   // makes one call, in which it dies
}

func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		flag.Parse()
		if err := flag.Set("test.parallel", "8"); err != nil { // DBOS looks for work once a second, and the tests wait for that
			panic(err)
		}
		os.Exit(pgtest.Run(m))
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run(context.Background())
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// points kills the process before its nth point: one of the runtime, or the beginning or the end of a record of DBOS.
type points struct {
	host.Host
	mu    sync.Mutex
	left  int
	trace *os.File
}

func (p *points) Point(ctx context.Context, id string) error {
	p.pass(id)
	return p.Host.Point(ctx, id)
}

func (p *points) pass(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trace != nil {
		_, _ = fmt.Fprintln(p.trace, id)
	}
	if p.left--; p.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing after the kill may run
	}
}

type recordKey struct{}

// TraceQueryStart is a point where DBOS records a step or the end of a workflow.
func (p *points) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	sql := strings.Join(strings.Fields(q.SQL), " ")
	step := strings.Contains(sql, "INSERT INTO") && strings.Contains(sql, "operation_outputs")
	if !step && !(strings.HasPrefix(sql, "UPDATE") && strings.Contains(sql, "workflow_status") && strings.Contains(sql, "output")) {
		return ctx
	}
	p.pass("dbos.record")
	return context.WithValue(ctx, recordKey{}, true)
}

// TraceQueryEnd is a point after it.
func (p *points) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(recordKey{}) != nil {
		p.pass("dbos.recorded")
	}
}

func (j job) run(ctx context.Context) (err error) {
	p := &points{Host: host.Real(), left: j.Kill}
	if j.Trace != "" {
		if p.trace, err = os.Create(j.Trace); err != nil {
			return err
		}
	}
	var opts []agent.Option
	if j.Ping {
		opts = append(opts, pings(func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }))
	}
	rt, closeAll, err := j.runtime(ctx, p, rules, opts...)
	if err != nil {
		return err
	}
	defer closeAll()
	cfg, err := pgxpool.ParseConfig(j.Database)
	if err != nil {
		return err
	}
	cfg.ConnConfig.Tracer = p
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	// Each job is an application: a process that DBOS gives a workflow of its application must have its journal and its folders.
	root, err := dbos.NewContext(ctx, dbos.Config{AppName: j.Workflow, SystemDBPool: pool, ApplicationVersion: "1", ExecutorID: j.Workflow})
	if err != nil {
		return err
	}
	e, err := dbosagent.New(root, rt)
	if err != nil {
		return err
	}
	work := func(ctx dbos.Context, fails bool) (string, error) {
		if j.Ping {
			return dbosagent.Run(ctx, e, perm.Principal{ID: "worker"}, func(tx *dbosagent.Txn) (string, error) {
				out, err := tx.Invoke("ping", "x")
				return out.Text, err
			})
		}
		return workflow(ctx, e, fails)
	}
	dbos.RegisterWorkflow(root, work, dbos.WithWorkflowName("work"))
	rec, err := e.Recover(ctx)
	if err != nil {
		return err
	}
	fmt.Println("compensated", len(rec.Compensated), "unknown", len(rec.Unknown))
	if err := dbos.Launch(root); err != nil {
		return err
	}
	defer dbos.Shutdown(root, time.Minute)
	h, err := dbos.RunWorkflow(root, work, j.Fails, dbos.WithWorkflowID(j.Workflow))
	if err != nil {
		return err
	}
	out, err := h.GetResult()
	fmt.Println("result", out)
	return err
}

func (j job) runtime(ctx context.Context, h host.Host, policyText string, opts ...agent.Option) (*agent.Runtime, func(), error) {
	journal, err := sqlite.Open(ctx, filepath.Join(j.Dir, "state"))
	if err != nil {
		return nil, nil, err
	}
	policy, err := rego.Load(rego.Source{FS: fstest.MapFS{"p.rego": {Data: []byte(policyText)}}})
	if err != nil {
		return nil, nil, err
	}
	counter, err := tool.CreateTyped("count", "Add one to the number in n.txt."+j.About, []perm.ResourceAccess{
		{Action: perm.Read, Resource: "file://workspace/n.txt"}, {Action: perm.Write, Resource: "file://workspace/n.txt"},
	}, count, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	if err != nil {
		return nil, nil, err
	}
	rt, err := agent.New(append(opts, agent.Tools(append(builtin.Files(), counter)...), agent.Root("workspace", filepath.Join(j.Dir, "ws")),
		agent.Policy(policy), agent.Journal(journal), agent.Host(h), agent.SuspendForApproval())...)
	return rt, func() { _ = errors.Join(rt.Close(), journal.Close()) }, err
}

// pings makes a tool with an effect outside that a second act can compensate.
func pings(does func() error) agent.Option {
	ping, err := tool.Create("ping", "Send a ping.", func(context.Context, string) (string, error) { return "sent", does() },
		tool.Effect(effect.Compensable), tool.RevertWith("1", func(context.Context, tool.RevertContext) error { return nil }), tool.Confined(tool.Trusted))
	if err != nil {
		panic(err) // it is always the same
	}
	return agent.Tools(ping)
}

func count(ctx context.Context, tc ctxperm.ToolContext, _ struct{}) (int, error) {
	f, err := files.Open(tc, "workspace")
	if err != nil {
		return 0, err
	}
	text, err := f.ReadFile(ctx, "n.txt")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, err
	}
	return n + 1, f.Write(ctx, "n.txt", []byte(strconv.Itoa(n+1)), files.WriteOptions{})
}

// workflow makes eight calls, two of which fail in every run.
func workflow(ctx dbos.Context, e *dbosagent.Engine, fails bool) (string, error) {
	return dbosagent.Run(ctx, e, perm.Principal{ID: "worker"}, func(tx *dbosagent.Txn) (string, error) {
		var said []string
		for _, c := range []struct {
			name string
			args tool.Args
			want tool.Status
		}{
			{"count", tool.Args{}, tool.StatusDone},
			{"file_write", tool.Args{"path": "new.txt", "content": "new\n"}, tool.StatusDone},
			{"no_such_tool", tool.Args{}, tool.StatusInvalid},
			{"count", tool.Args{}, tool.StatusDone},
			{"file_edit", tool.Args{"path": "a.txt", "old": "is not there", "new": "b"}, tool.StatusFailed},
			{"file_edit", tool.Args{"path": "a.txt", "old": "alpha", "new": "beta"}, tool.StatusDone},
			{"file_delete", tool.Args{"path": "c.txt"}, tool.StatusDone},
			{"count", tool.Args{}, tool.StatusDone},
		} {
			out, err := tx.Invoke(c.name, c.args)
			if out.Status != c.want {
				return "", fmt.Errorf("%s is %s: %w", c.name, out.Status, err)
			}
			said = append(said, out.Tool+" "+string(out.Status))
		}
		if fails {
			return "", errors.New("it ends so")
		}
		return strings.Join(said, ", "), nil
	})
}

func (j job) start(t *testing.T) (out string, killed bool) {
	t.Helper()
	text, err := json.Marshal(j)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	raw, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		return string(raw), status.Signaled()
	}
	require.NoError(t, err)
	return string(raw), false
}

var before = map[string]string{"a.txt": "alpha\n", "c.txt": "sea\n", "n.txt": "0"}

func newJob(t *testing.T, database, name string, fails bool) job {
	j := job{Database: database, Dir: t.TempDir(), Workflow: name, Fails: fails}
	require.NoError(t, os.Mkdir(filepath.Join(j.Dir, "ws"), 0o755))
	for name, text := range before {
		require.NoError(t, os.WriteFile(filepath.Join(j.Dir, "ws", name), []byte(text), 0o644))
	}
	return j
}

func (j job) files(t *testing.T) map[string]string {
	found := map[string]string{}
	list, err := os.ReadDir(filepath.Join(j.Dir, "ws"))
	require.NoError(t, err)
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(j.Dir, "ws", e.Name()))
		require.NoError(t, err)
		found[e.Name()] = string(text)
	}
	return found
}

// TestKilled kills a workflow before each kind of point: of the runtime, and around what DBOS records. The next process completes it,
// and each call has had its effect once; if the workflow fails, none.
func TestKilled(t *testing.T) {
	t.Parallel()
	database, _ := pgtest.Database(t)
	for _, fails := range []bool{false, true} {
		want := map[string]string{"a.txt": "beta\n", "n.txt": "3", "new.txt": "new\n"}
		if fails {
			want = before
		}
		control := newJob(t, database, fmt.Sprint("control-", fails), fails)
		control.Trace = filepath.Join(control.Dir, "trace")
		said, killed := control.start(t)
		require.False(t, killed)
		require.Equal(t, want, control.files(t), said)
		raw, err := os.ReadFile(control.Trace)
		require.NoError(t, err)
		passed := strings.Fields(string(raw))
		require.GreaterOrEqual(t, strings.Count(string(raw), "dbos.recorded"), 9, "control: points around records of DBOS")
		for _, at := range choose(passed) {
			t.Run(fmt.Sprint("fails=", fails, "/", at), func(t *testing.T) {
				t.Parallel() // most of it waits for DBOS to find the workflow
				j := newJob(t, database, fmt.Sprint("killed-", fails, "-", at), fails)
				j.Kill = at
				first, killed := j.start(t)
				about := fmt.Sprintf("killed at %d, %s:\n%s", at, passed[at-1], first)
				require.True(t, killed, about)
				j.Kill = 0
				defer j.bystander(t)()
				next, killed := j.start(t)
				require.False(t, killed, about)
				require.Equal(t, want, j.files(t), "%s\nthen:\n%s", about, next)
				require.Equal(t, result(said), result(next), about)
				j.oneTransaction(t, about)
			})
		}
	}
}

// bystander is another process with the same journal, which looks for work of its own and lives on.
func (j job) bystander(t *testing.T) (end func()) {
	rt, closeAll, err := j.runtime(t.Context(), host.Real(), rules)
	require.NoError(t, err)
	root, err := dbos.NewContext(context.Background(), dbos.Config{
		AppName: "bystander", DatabaseURL: j.Database, ApplicationVersion: "1", ExecutorID: "bystander", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	e, err := dbosagent.New(root, rt)
	require.NoError(t, err)
	_, err = e.Recover(t.Context())
	require.NoError(t, err)
	return func() {
		require.NoError(t, dbos.Shutdown(root, time.Minute))
		closeAll()
	}
}

// oneTransaction reads the journal: the workflow has begun one transaction, and ended it.
func (j job) oneTransaction(t *testing.T, about string) {
	rt, closeAll, err := j.runtime(t.Context(), host.Real(), rules)
	require.NoError(t, err)
	defer closeAll()
	rec, err := rt.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, rec.Abandoned, about)
	require.Empty(t, rec.Settled, about)
	began := 0
	for e, err := range rt.Journal().Entries(t.Context(), journal.Query{Kinds: []record.Kind{record.KindPrompted}}) {
		require.NoError(t, err)
		require.NotEmpty(t, e.Header.Txn)
		began++
	}
	require.Equal(t, 1, began, about)
}

// result is the line that says how the workflow ended.
func result(out string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "result") || strings.HasPrefix(line, "error") {
			return line
		}
	}
	return out
}

// choose picks each kind of point once, those around records of DBOS by what comes before and after them. With REMIT_PROVE it picks all.
func choose(passed []string) (at []int) {
	seen := map[string]bool{}
	last := ""
	for i, p := range passed {
		kind := p
		if strings.HasPrefix(p, "dbos.") || strings.HasPrefix(last, "dbos.") {
			kind = last + " " + p
		}
		if !seen[kind] || os.Getenv("REMIT_PROVE") != "" {
			seen[kind] = true
			at = append(at, i+1)
		}
		last = p
	}
	return at
}
