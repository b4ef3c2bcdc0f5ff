// Command release prepares a release as an agent and reverts it as one
// transaction: files, a program, rows of a database and calls of a service. The
// program creates a small world in a temporary folder, lets the agent work in
// it, reverts the work, and compares the world with its state before. It ends
// with an error if they differ.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/revert"
)

// choices say what happens before the work is reverted.
type choices struct {
	folder  string // empty: a temporary one
	commit  bool
	kill    bool
	foreign string
}

func main() {
	process.Main() // this program is also the first process of its own sandbox
	var c choices
	flag.StringVar(&c.folder, "in", "", "make the world in this new `FOLDER`, and leave it there")
	flag.BoolVar(&c.commit, "commit", false, "commit before it is reverted: the mail has left then")
	flag.BoolVar(&c.kill, "kill", false, "kill -9 the agent in the middle of a request; another process takes its work back")
	flag.StringVar(&c.foreign, "foreign", "", "somebody else changes the same `PART` meanwhile: tree, database or service")
	worker := flag.String("agent", "", "be the agent in this `FOLDER` (of -kill)")
	url := flag.String("site", "", "where the `SITE` is (of -kill)")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch {
	case flag.NArg() > 0 || c.kill && c.commit || c.foreign != "" && concurrentChanges[c.foreign].do == nil:
		flag.Usage()
		os.Exit(2)
	case *worker != "":
		err = runToKill(ctx, os.Stdout, &releaseEnv{dir: *worker}, *url)
	default:
		err = run(ctx, os.Stdout, c)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run creates the world, runs and reverts the work, and checks the result.
func run(ctx context.Context, out io.Writer, c choices) (err error) {
	dir, leave, err := folder(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	w, err := newReleaseEnv(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.site.server.Close()) }()
	t := &progressWriter{out: out, site: w.site.url}
	before, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	t.snapshot("The world before", before)
	d, txn, err := w.work(ctx, t, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	after, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	t.changes("What was changed", before, after, w)
	left, err := w.changeConcurrently(ctx, t, c)
	if err != nil {
		return err
	}
	t.title("Revert all of it")
	report, err := d.Revert(ctx, txn, revert.Options{})
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) { // the report covers that error
		return err
	}
	t.report(report)
	return w.check(ctx, t, c, before, left, report)
}

// folder returns the folder of the world, and a function for its end.
func folder(c choices) (dir string, leave func() error, err error) {
	if c.folder != "" {
		dir, err = filepath.Abs(c.folder)
		return dir, func() error { return nil }, errors.Join(err, os.Mkdir(dir, 0o700))
	}
	dir, err = os.MkdirTemp("", "remit-release-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// work runs the agent, here or in its own process that is killed. The returned
// desk can revert the transaction.
func (w *releaseEnv) work(ctx context.Context, t *progressWriter, c choices) (*app, string, error) {
	if c.kill {
		return w.runAndRecover(ctx, t)
	}
	d, err := newApp(ctx, w, w.site.url)
	if err != nil {
		return nil, "", err
	}
	t.title("An agent prepares release 1.5.0")
	tx, err := d.prepare(ctx, t.call)
	if err == nil && c.commit {
		t.title("Commit: what was held is released")
		err = tx.Commit(ctx)
		for _, out := range tx.Released() {
			t.call(0, out)
		}
	}
	if err != nil {
		return nil, "", errors.Join(err, d.Close())
	}
	return d, tx.ID(), nil
}

// runToKill runs the agent in its own process. It never comes to its end.
func runToKill(ctx context.Context, out io.Writer, w *releaseEnv, url string) error {
	d, err := newApp(ctx, w, url)
	if err != nil {
		return err
	}
	_, err = d.prepare(ctx, (&progressWriter{out: out, site: url}).call)
	return errors.Join(err, d.Close(), errors.New("nobody killed the agent"))
}

// runAndRecover kills the agent when the site has created the release, before the
// agent gets the response. Then it recovers the journal.
func (w *releaseEnv) runAndRecover(ctx context.Context, t *progressWriter) (*app, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	t.title("An agent prepares release 1.5.0, and is killed")
	cmd := exec.CommandContext(ctx, self, "-agent", w.dir, "-site", w.site.url)
	cmd.Stdout, cmd.Stderr = t.out, os.Stderr
	started, gone := make(chan struct{}), make(chan struct{})
	w.site.whenMade(func() {
		<-started
		_ = cmd.Process.Kill() // kill -9; its end is reported below
		<-gone
	})
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	close(started)
	_ = cmd.Wait() // its end is reported below
	close(gone)
	t.say("the agent ended: %v", cmd.ProcessState)
	return w.pickUp(ctx, t)
}

// pickUp finds what a dead process left: first the outcome of its call in
// flight, then its abandoned transaction.
func (w *releaseEnv) pickUp(ctx context.Context, t *progressWriter) (*app, string, error) {
	t.title("Another process looks at the journal")
	d, err := newApp(ctx, w, w.site.url)
	if err != nil {
		return nil, "", err
	}
	found, err := d.Recover(ctx)
	if err == nil && len(found.Abandoned) != 1 {
		err = fmt.Errorf("the agent left %d transactions, want one", len(found.Abandoned))
	}
	if err != nil {
		return nil, "", errors.Join(err, d.Close())
	}
	for _, s := range found.Settled {
		t.say("%s was in flight: %s, %s", s.Tool, s.Outcome, s.Why)
	}
	t.say("a transaction is open, its owner gone")
	return d, found.Abandoned[0], nil
}
