// Command durable has its own tool that writes files, its own rules, and a
// journal that survives the process. It recovers and reverts what an earlier
// run left before it begins.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

//go:embed policy.rego
var rules embed.FS

func main() {
	dir, err := os.MkdirTemp("", "remit-durable-")
	if err == nil {
		err = run(context.Background(), filepath.Join(dir, "state"), filepath.Join(dir, "notes"))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// noteArgs is the model's input.
type noteArgs struct {
	Name string `json:"name" jsonschema:"name of the note, without ending"`
	Text string `json:"text" jsonschema:"the note"`
}

// newNoteTool writes a note and its index card. It acts only through files, so its
// effects are known, and the runtime can revert it also after a crash.
func newNoteTool() (tool.Tool, error) {
	needs := []perm.ResourceAccess{
		{Action: perm.Write, Resource: "file://notes/{name}.md"},
		{Action: perm.Write, Resource: "file://notes/{name}.card"},
	}
	return tool.CreateTyped("note_pair", "Write a note and its index card.", needs,
		func(ctx context.Context, tc ctxperm.ToolContext, in noteArgs) (string, error) {
			f, err := files.Open(tc, "notes")
			if err != nil {
				return "", err
			}
			if err := f.Write(ctx, in.Name+".md", []byte(in.Text), files.WriteOptions{}); err != nil {
				return "", err
			}
			return "written", f.Write(ctx, in.Name+".card", []byte("see "+in.Name+".md\n"), files.WriteOptions{})
		},
		tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
}

func run(ctx context.Context, state, notes string) (err error) {
	if err := os.MkdirAll(notes, 0o755); err != nil {
		return err
	}
	journal, err := sqlite.Open(ctx, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	policy, err := rego.Load(rego.Source{FS: rules})
	if err != nil {
		return err
	}
	pairs, err := newNoteTool()
	if err != nil {
		return err
	}
	rt, err := agent.New(agent.Tools(pairs), agent.Root("notes", notes), agent.Policy(policy), agent.Journal(journal))
	if err != nil {
		return err
	}
	defer rt.Close()
	if err := tidy(ctx, rt); err != nil {
		return err
	}
	s, err := rt.Session(ctx, perm.Principal{ID: "writer"})
	if err != nil {
		return err
	}
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		_, err := tx.Invoke(ctx, "note_pair", tool.Args{"name": "plan", "text": "Ship it.\n"})
		return err
	})
	fmt.Println("committed", id, err)
	return err
}

// tidy recovers the calls that a killed run left in flight, and reverts its
// open transactions.
func tidy(ctx context.Context, rt *agent.Runtime) error {
	found, err := rt.Recover(ctx)
	if err != nil {
		return err
	}
	for _, txn := range found.Abandoned {
		if _, err := rt.Revert(ctx, txn, revert.Options{}); err != nil {
			return err
		}
	}
	return nil
}
