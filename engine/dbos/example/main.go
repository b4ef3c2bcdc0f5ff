// Command example is an agent whose work survives its process: kill it at any time and start it again with the same flags. It goes
// on where it was, and each call has its effect once. If it is cancelled instead, its transaction is reverted.
//
//	go run . -database postgres://…/db -dir /tmp/work -workflow tidy-1
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	dbosagent "github.com/remit-dev/remit/engine/dbos"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

//go:embed policy.rego
var rules embed.FS

func main() {
	database := flag.String("database", "", "location of the PostgreSQL database of DBOS")
	dir := flag.String("dir", "", "folder for the notes and the journal")
	id := flag.String("workflow", "tidy-1", "ID of the workflow")
	flag.Parse()
	if err := run(context.Background(), *database, *dir, *id); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database, dir, id string) (err error) {
	rt, done, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	root, err := dbos.NewContext(ctx, dbos.Config{
		AppName: "remit-example", DatabaseURL: database, Logger: slog.New(slog.DiscardHandler),
		ApplicationVersion: "1", ExecutorID: "here", // the defaults would be another version after each build
	})
	if err != nil {
		return err
	}
	defer dbos.Shutdown(root, time.Minute)
	engine, err := dbosagent.New(root, rt)
	if err != nil {
		return err
	}
	tidy := func(ctx dbos.Context, task string) (int, error) { return loop(ctx, engine, task) }
	dbos.RegisterWorkflow(root, tidy, dbos.WithWorkflowName("tidy"))
	if _, err := engine.Recover(ctx); err != nil { // before the launch, which continues workflows
		return err
	}
	if err := dbos.Launch(root); err != nil {
		return err
	}
	work, err := dbos.RunWorkflow(root, tidy, "number the notes", dbos.WithWorkflowID(id)) // or the one that is under way
	if err != nil {
		return err
	}
	calls, err := work.GetResult()
	fmt.Println("made", calls, "calls")
	return err
}

// loop asks the model for the next call until there is none.
func loop(ctx dbos.Context, e *dbosagent.Engine, task string) (int, error) {
	return dbosagent.Run(ctx, e, perm.Principal{ID: "tidier"}, func(tx *dbosagent.Txn) (calls int, err error) {
		history := []string{task}
		for {
			// The answer of a model is different each time, so it is a step.
			next, err := dbos.RunAsStep(ctx, func(context.Context) (answer, error) { return model(history), nil })
			if err != nil || next.Tool == "" {
				return calls, err
			}
			out, err := tx.Invoke(next.Tool, next.Args)
			if err != nil && out.Status == "" { // of the engine; the model reads every other error
				return calls, err
			}
			calls++
			fmt.Println("call", calls, next.Tool, out.Status)
			history = append(history, out.Text)
		}
	})
}

// answer is a call that the model wants. Without a tool, it has finished.
type answer struct {
	Tool string
	Args tool.Args
}

// model plays the model, with a plan of forty notes.
func model(history []string) answer {
	n := len(history)
	if n > 40 {
		return answer{}
	}
	return answer{"add_note", tool.Args{"text": fmt.Sprintf("note %d", n)}}
}

type note struct {
	Text string `json:"text" jsonschema:"the note, one line"`
}

// newTool makes the tool of the agent. Adding a note twice would be wrong, and it never happens.
func newTool() (tool.Tool, error) {
	return tool.CreateTyped("add_note", "Add a note to the notes.", []perm.ResourceAccess{{Action: perm.Write, Resource: "file://notes/notes.txt"}},
		func(ctx context.Context, tc ctxperm.ToolContext, in note) (string, error) {
			f, err := files.Open(tc, "notes")
			if err != nil {
				return "", err
			}
			return "added", f.Append(ctx, "notes.txt", []byte(in.Text+"\n"))
		},
		tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
}

func open(ctx context.Context, dir string) (*agent.Runtime, func() error, error) {
	notes := filepath.Join(dir, "notes")
	if err := os.MkdirAll(notes, 0o755); err != nil {
		return nil, nil, err
	}
	journal, err := sqlite.Open(ctx, filepath.Join(dir, "state"))
	if err != nil {
		return nil, nil, err
	}
	policy, err := rego.Load(rego.Source{FS: rules})
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	add, err := newTool()
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	rt, err := agent.New(agent.Tools(add), agent.Root("notes", notes), agent.Policy(policy), agent.Journal(journal))
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	return rt, func() error { return errors.Join(rt.Close(), journal.Close()) }, nil
}
