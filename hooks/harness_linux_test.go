package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/treecheck"
	_ "github.com/remit-dev/remit/internal/sandbox/first" // the test binary is its own shim
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// project is a server with one workspace, and a person who looks at it.
type project struct {
	t     *testing.T
	dir   string
	state string
	rt    *agent.Runtime
	srv   *hooks.Server
	gone  bool // the folder is another one; the next opening finds it
	opens int

	engine   perm.Engine
	host     *lateHost
	confined bool
	journal  journal.Journal
	tokens   map[string]string // of the sessions
}

// newProject opens a server for a new folder. rules are added to the pack.
func newProject(t *testing.T, confined bool, rules string) *project {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	d := &project{t: t, dir: filepath.Join(base, "project"), state: filepath.Join(base, "state")}
	require.NoError(t, os.Mkdir(d.dir, 0o755))
	var sources []rego.Source
	if rules != allowAll {
		sources = append(sources, rego.Source{FS: policies.CodingAgent(), NoTests: true})
	}
	if rules != "" {
		own := filepath.Join(base, "rules")
		require.NoError(t, os.Mkdir(own, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(own, "own.rego"), []byte(rules), 0o600))
		sources = append(sources, rego.Source{FS: os.DirFS(own)})
	}
	engine, err := rego.New(rego.Options{Sources: sources, Timeout: time.Minute})
	require.NoError(t, err)
	d.engine, d.confined, d.tokens = engine, confined, map[string]string{}
	d.host = &lateHost{Host: host.Real()}
	d.open()
	t.Cleanup(func() {
		require.NoError(t, d.srv.Close(context.Background()))
		d.dies()
	})
	return d
}

// open starts a resident process.
func (d *project) open() {
	d.t.Helper()
	t := d.t
	var err error
	d.journal, err = sqlite.Open(t.Context(), d.state)
	require.NoError(t, err)
	programs, err := process.New(process.Config{Scratch: filepath.Join(d.state, "scratch")})
	require.NoError(t, err)
	near, err := web.New(web.Options{})
	require.NoError(t, err)
	kept, err := process.NewSnapshotter(process.SnapshotConfig{Dir: filepath.Join(d.state, "kept")})
	require.NoError(t, err)
	d.rt, err = agent.New(
		agent.Root("workspace", d.dir), agent.Policy(d.engine), agent.Journal(d.journal), agent.Log(slog.New(slog.DiscardHandler)),
		agent.Driver(programs), agent.Driver(near), agent.Driver(kept), agent.Tools(hooks.Tools()...), agent.SuspendForApproval(), agent.Host(d.host),
	)
	require.NoError(t, err)
	space := &hooks.Workspace{Dir: d.dir, Runtime: d.rt, Sandbox: d.confined, Session: d.agentSession, Gone: func() bool { return d.gone }}
	_, err = space.Recover(t.Context(), d.host.Now())
	require.NoError(t, err)
	d.srv = hooks.New("remit", func(err error) { t.Error(err) }, func(context.Context, string) (*hooks.Workspace, error) {
		d.gone, d.opens = false, d.opens+1
		return space, nil
	})
}

// agentSession opens the session of a client's session, or continues it in
// another process.
func (d *project) agentSession(ctx context.Context, client, id string) (*agent.Session, error) {
	if token := d.tokens[client+id]; token != "" {
		return d.rt.ResumeSession(ctx, token)
	}
	s, err := d.rt.Session(ctx, perm.Principal{ID: client})
	if err == nil {
		d.tokens[client+id] = s.Token()
	}
	return s, err
}

// dies ends the process without the end of its sessions.
func (d *project) dies() {
	d.t.Helper()
	require.NoError(d.t, d.rt.Close())
	require.NoError(d.t, d.journal.Close())
}

// restarts kills the resident process and starts another one.
func (d *project) restarts() {
	d.t.Helper()
	d.dies()
	d.open()
}

// write writes a file of the project, as a person does.
func (d *project) write(name, content string) {
	d.t.Helper()
	name = filepath.Join(d.dir, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(d.t, os.WriteFile(name, []byte(content), 0o600))
}

func (d *project) tree() treecheck.Tree {
	d.t.Helper()
	tree, err := treecheck.Capture(d.dir)
	require.NoError(d.t, err)
	return tree
}

// undo reverts the newest transaction with a call.
func (d *project) undo(txn string) revert.Report {
	d.t.Helper()
	rep, err := d.rt.Revert(d.t.Context(), txn, revert.Options{By: "person"})
	if err != nil {
		require.ErrorIs(d.t, err, agent.ErrPartialRevert)
	}
	return rep
}

// txns returns the transactions of the journal, oldest first.
func (d *project) txns() (ids []string) {
	d.t.Helper()
	for e, err := range d.rt.Journal().Entries(d.t.Context(), journal.Query{Kinds: []record.Kind{record.KindBegun}}) {
		require.NoError(d.t, err)
		ids = append(ids, e.Header.Txn)
	}
	return ids
}

// coder is a coding agent: it sends events as its client does, and uses its own
// tools if the answers let it.
type coder struct {
	*project
	client  hooks.Client
	session string
	agent   string   // the sub-agent that acts
	mode    string   // of permissions
	stdin   *os.File // of the next sandboxed command; nil: empty
	prompt  int
	uses    int
}

func (d *project) coder(name, session string) *coder {
	c, ok := hooks.Find(name)
	require.True(d.t, ok)
	return &coder{project: d, client: c, session: session}
}

// last returns the newest transaction.
func (d *project) last() string {
	d.t.Helper()
	all := d.txns()
	require.NotEmpty(d.t, all)
	return all[len(all)-1]
}

// event sends one event.
func (c *coder) event(name string, members map[string]any) (hooks.Event, hooks.Answer) {
	c.t.Helper()
	all := map[string]any{"session_id": c.session, "cwd": c.dir, "hook_event_name": name, "prompt_id": fmt.Sprintf("p%d", c.prompt)}
	if c.agent != "" {
		all["agent_id"] = c.agent
	}
	if c.mode != "" {
		all["permission_mode"] = c.mode
	}
	for k, v := range members {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	require.NoError(c.t, err)
	e, err := c.client.Parse(raw)
	require.NoError(c.t, err)
	return e, c.srv.Handle(c.t.Context(), c.client, e, "")
}

// says begins a prompt.
func (c *coder) says(text string) {
	c.t.Helper()
	c.prompt++
	_, a := c.event("UserPromptSubmit", map[string]any{"prompt": text})
	require.Equal(c.t, hooks.Answer{}, a)
}

// stops ends a prompt.
func (c *coder) stops() {
	c.t.Helper()
	_, a := c.event("Stop", nil)
	require.Equal(c.t, hooks.Answer{}, a)
}

// did is what became of one use of a tool.
type did struct {
	before, after hooks.Answer
	code          int
	out           string
	id            string
}

// asks sends the event before a use, and returns it with the answer.
func (c *coder) asks(tool string, in map[string]any) (string, hooks.Answer) {
	c.t.Helper()
	c.uses++
	id := fmt.Sprintf("u%d", c.uses)
	_, a := c.event("PreToolUse", map[string]any{"tool_name": tool, "tool_use_id": id, "tool_input": in})
	return id, a
}

// reports sends the event after a use.
func (c *coder) reports(tool, id string, in map[string]any, output any) hooks.Answer {
	c.t.Helper()
	_, a := c.event("PostToolUse", map[string]any{"tool_name": tool, "tool_use_id": id, "tool_input": in, "tool_response": output})
	return a
}

// runs uses the shell.
func (c *coder) runs(command string) did {
	c.t.Helper()
	in := map[string]any{"command": command}
	id, a := c.asks("Bash", in)
	one := did{before: a, id: id}
	if a.Verdict == hooks.Deny {
		return one
	}
	if a.Input != nil {
		one.out, one.code = c.shows(a.Input)
	} else {
		out, err := exec.Command("bash", "-c", "cd "+c.dir+" && "+command).CombinedOutput()
		one.out = string(out)
		if err != nil {
			one.code = 1
		}
	}
	one.after = c.reports("Bash", id, in, map[string]any{"stdout": one.out})
	return one
}

// shows is the process remit exec --call.
func (c *coder) shows(input json.RawMessage) (string, int) {
	c.t.Helper()
	show := c.starts(input)
	return show()
}

// starts is the beginning of shows; the returned function waits for its end.
func (c *coder) starts(input json.RawMessage) (wait func() (string, int)) {
	c.t.Helper()
	read, write, err := os.Pipe()
	require.NoError(c.t, err)
	null := c.stdin
	if c.stdin = nil; null == nil {
		null, err = os.Open(os.DevNull)
		require.NoError(c.t, err)
	}
	var out bytes.Buffer
	copied := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, read)
		close(copied)
	}()
	exit := make(chan hooks.Exit, 1)
	require.NoError(c.t, c.srv.Attach(token(c.t, input), &hooks.Command{Dir: c.dir, Stdin: null, Stdout: write, Stderr: write, Gone: make(chan struct{}), Exit: exit}))
	return func() (string, int) {
		e := <-exit
		require.NoError(c.t, write.Close())
		<-copied
		require.NoError(c.t, read.Close())
		require.NoError(c.t, null.Close())
		return out.String() + e.Message, e.Code
	}
}

// edits uses a tool that writes one file.
func (c *coder) edits(tool, name, content string) did {
	c.t.Helper()
	in := map[string]any{"file_path": filepath.Join(c.dir, name), "content": content}
	id, a := c.asks(tool, in)
	one := did{before: a, id: id}
	if a.Verdict == hooks.Deny {
		return one
	}
	c.write(name, content)
	one.after = c.reports(tool, id, in, map[string]any{"type": "create"})
	return one
}

func approve(call string) agent.Answer {
	return agent.Answer{Call: call, Approved: true, By: "person"}
}

func principal(id string) perm.Principal { return perm.Principal{ID: id} }

// token returns the token in a rewritten command.
func token(t *testing.T, input json.RawMessage) string {
	t.Helper()
	var in struct {
		Command string `json:"command"`
	}
	require.NoError(t, json.Unmarshal(input, &in))
	return strings.Fields(in.Command)[3]
}
