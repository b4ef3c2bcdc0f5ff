// A release, prepared by an agent and taken back as one: files, a program, rows of a
// database and calls of a service are one transaction. The program makes a small
// world of its own in a temporary folder, lets the agent work in it, takes the work
// back, holds the world against what it was, and ends with an error unless it is.
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
)

// choices are what happens before the work is taken back.
type choices struct {
	folder  string // empty: one that goes again
	commit  bool
	kill    bool
	foreign string
}

func main() {
	process.Main() // this program is also the first process of its own sandbox
	var c choices
	flag.StringVar(&c.folder, "in", "", "make the world in this new `FOLDER`, and leave it there")
	flag.BoolVar(&c.commit, "commit", false, "commit before it is taken back: the mail has left then")
	flag.BoolVar(&c.kill, "kill", false, "kill -9 the agent in the middle of a request; another process takes its work back")
	flag.StringVar(&c.foreign, "foreign", "", "somebody else changes the same `PART` meanwhile: tree, database or service")
	worker := flag.String("agent", "", "be the agent in this `FOLDER` (of -kill)")
	url := flag.String("site", "", "where the `SITE` is (of -kill)")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch {
	case flag.NArg() > 0 || c.kill && c.commit || c.foreign != "" && meddlings[c.foreign].do == nil:
		flag.Usage()
		os.Exit(2)
	case *worker != "":
		err = perish(ctx, os.Stdout, &world{dir: *worker}, *url)
	default:
		err = run(ctx, os.Stdout, c)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run makes the world, has the work done and taken back, and checks.
func run(ctx context.Context, out io.Writer, c choices) (err error) {
	dir, leave, err := folder(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	w, err := newWorld(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.site.server.Close()) }()
	t := &teller{out: out, site: w.site.url}
	before, err := w.snapshot(ctx)
	if err != nil {
		return err
	}
	t.world("The world before", before)
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
	left, err := w.meddle(ctx, t, c)
	if err != nil {
		return err
	}
	t.title("Take all of it back")
	report, err := d.Revert(ctx, txn)
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) { // that one is what the report is about
		return err
	}
	t.report(report)
	return w.check(ctx, t, c, before, left, report)
}

// folder is where the world is made, and what becomes of it at the end.
func folder(c choices) (dir string, leave func() error, err error) {
	if c.folder != "" {
		dir, err = filepath.Abs(c.folder)
		return dir, func() error { return nil }, errors.Join(err, os.Mkdir(dir, 0o700))
	}
	dir, err = os.MkdirTemp("", "remit-release-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// work has the agent work, here or in a process of its own that is killed. The
// desk that it returns can take the transaction back.
func (w *world) work(ctx context.Context, t *teller, c choices) (*desk, string, error) {
	if c.kill {
		return w.workAndDie(ctx, t)
	}
	d, err := newDesk(ctx, w, w.site.url)
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

// perish is the agent in a process of its own. It never comes to its end.
func perish(ctx context.Context, out io.Writer, w *world, url string) error {
	d, err := newDesk(ctx, w, url)
	if err != nil {
		return err
	}
	_, err = d.prepare(ctx, (&teller{out: out, site: url}).call)
	return errors.Join(err, d.Close(), errors.New("nobody killed the agent"))
}

// workAndDie kills the agent when the site has made the release, and before the
// agent hears of it. Then it recovers what is on the journal.
func (w *world) workAndDie(ctx context.Context, t *teller) (*desk, string, error) {
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
		_ = cmd.Process.Kill() // kill -9; how it ended is told below
		<-gone
	})
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	close(started)
	_ = cmd.Wait() // how it ended is told below
	close(gone)
	t.say("the agent ended: %v", cmd.ProcessState)
	return w.pickUp(ctx, t)
}

// pickUp finds what a dead process left: first what became of the call that it was
// in, then the transaction, which nobody owns any more.
func (w *world) pickUp(ctx context.Context, t *teller) (*desk, string, error) {
	t.title("Another process looks at the journal")
	d, err := newDesk(ctx, w, w.site.url)
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
