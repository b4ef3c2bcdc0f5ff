// Command conversation runs a whole conversation with a model, in the wire
// format of each of six providers: parallel calls, one that is malformed and
// corrected, one that is denied, one that waits for approval while the process
// is gone, an answer, and a revert of all of it. The model is a script behind a
// local HTTP server, which rejects requests that the provider would reject.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/tool/wire"
)

//go:embed policy.rego
var rules embed.FS

func main() {
	for _, f := range wire.Formats() {
		dir, err := os.MkdirTemp("", "remit-conversation-")
		if err == nil {
			err = run(context.Background(), os.Stdout, dir, f)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// run has the conversation in one format: first until it waits, then, like
// another process, to its end.
func run(ctx context.Context, out io.Writer, dir string, f wire.Format) error {
	s, err := serve(f)
	if err != nil {
		return err
	}
	defer s.Close()
	d := &app{dir: dir, server: s, out: out, format: f}
	if err := d.furnish(); err != nil {
		return err
	}
	before, err := d.tree()
	if err != nil {
		return err
	}
	d.say("== %s\nuser: %s", f, question)
	for _, life := range []func(context.Context, *agent.Runtime) error{d.begin, d.finish, d.revert} {
		if err := d.live(ctx, life); err != nil {
			return err
		}
	}
	after, err := d.tree()
	if err != nil {
		return err
	}
	d.say("the files are as they were: %t", before == after)
	return nil
}

// app is the state that survives a process: folders, and a server.
type app struct {
	dir    string
	server *server
	out    io.Writer
	format wire.Format
}

func (d *app) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

func (d *app) kept() string { return filepath.Join(d.dir, "conversation.json") }

// live is one process: it opens the journal, and closes it.
func (d *app) live(ctx context.Context, life func(context.Context, *agent.Runtime) error) (err error) {
	journal, err := sqlite.Open(ctx, filepath.Join(d.dir, "state"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	policy, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{
		{FS: policies.Workspace(), Prefix: policies.Prefix}, {FS: rules},
	}})
	if err != nil {
		return err
	}
	rt, err := agent.New(agent.Tools(builtin.Files()...), agent.Root("workspace", filepath.Join(d.dir, "cafe")), agent.Policy(policy),
		agent.Journal(journal), agent.SuspendForApproval(), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	return life(ctx, rt)
}

// loop returns the loop of one session.
func (d *app) loop() (agent.Loop, error) {
	adapter, err := wire.New(d.format, builtin.Files()...)
	return agent.Loop{Adapter: adapter, CallModel: d.server.ask, Save: d.keep, OnResults: d.show}, err
}

// keep saves the conversation atomically.
func (d *app) keep(_ context.Context, c agent.Conversation) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.kept()+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(d.kept()+".new", d.kept())
}

func (d *app) recall() (c agent.Conversation, err error) {
	raw, err := os.ReadFile(d.kept())
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	return c, err
}

// show prints each turn for a person.
func (d *app) show(calls []wire.Call, outcomes []tool.Outcome) {
	for i, c := range calls {
		d.say("  %s: %s", c.Name, outcomes[i].Status)
	}
}

// begin starts the conversation, and runs the requested calls until one waits
// for approval.
func (d *app) begin(ctx context.Context, rt *agent.Runtime) error {
	loop, err := d.loop()
	if err != nil {
		return err
	}
	s, err := rt.Session(ctx, perm.Principal{ID: "waiter"})
	if err != nil {
		return err
	}
	c := agent.Conversation{Messages: []json.RawMessage{d.server.user(question)}}
	_, err = s.Update(ctx, func(tx *agent.Txn) (err error) {
		c, err = loop.Run(ctx, tx, c)
		return err
	})
	if !errors.Is(err, tool.ErrPending) {
		return fmt.Errorf("the conversation waits for nobody: %w", err)
	}
	d.say("one call waits for approval; the process ends")
	return nil
}

// finish approves the call and continues the conversation.
func (d *app) finish(ctx context.Context, rt *agent.Runtime) error {
	c, err := d.recall()
	if err != nil {
		return err
	}
	for _, call := range c.Waiting {
		if err := rt.Answer(ctx, agent.Answer{Call: call, Approved: true, By: "owner"}); err != nil {
			return err
		}
		d.say("the owner approves it; another process goes on")
	}
	loop, err := d.loop()
	if err != nil {
		return err
	}
	tx, err := rt.ResumeTxn(ctx, c.Txn)
	if err != nil {
		return err
	}
	if c, err = loop.Run(ctx, tx, c); err != nil {
		return err
	}
	d.say("calls: %d, turns: %d", c.Calls, c.Turns)
	for i, told := range d.server.model.Received() {
		d.say("  told %d: %q, an error: %t", i+1, told.Text, told.Failed)
	}
	return tx.Commit(ctx)
}

// revert reverts everything.
func (d *app) revert(ctx context.Context, rt *agent.Runtime) error {
	c, err := d.recall()
	if err != nil {
		return err
	}
	report, err := rt.Revert(ctx, c.Txn, revert.Options{})
	d.say("reverted: %d changes, left: %d", len(report.Items), len(report.NotReverted()))
	return err
}
