package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// Effects run unasked, and a person looks once at all that a transaction did
// before it commits.
func ExampleCommitError() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "commit")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	engine, err := rego.New(rego.Options{Modules: map[string]string{"p.rego": `package remit

allow contains "files can be reverted" if input.access.resource.kind == "file"

ask_commit contains "one look at the end" if count(input.txn.effects) > 0
`}})
	if err != nil {
		panic(err)
	}
	rt, err := agent.New(agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close() }()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		panic(err)
	}
	id, err := s.Update(ctx, func(tx *agent.Txn) error {
		_, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": "hello\n"})
		return err
	})
	var gate *agent.CommitError
	fmt.Println("it waits:", errors.As(err, &gate) && errors.Is(err, tool.ErrPending))

	text, err := rt.CommitText(ctx, id) // what the person looks at
	if err != nil {
		panic(err)
	}
	fmt.Print(text[len(text)-len("+hello\n"):])
	err = rt.Answer(ctx, agent.Answer{Txn: id, Approved: true, By: "ann", RequestDigest: gate.Request})
	if err != nil {
		panic(err)
	}
	tx, err := s.ResumeTxn(ctx, id)
	if err == nil {
		err = tx.Commit(ctx)
	}
	_, there := os.Stat(filepath.Join(dir, "a.txt"))
	fmt.Println("committed:", err == nil && there == nil)
	// Output:
	// it waits: true
	// +hello
	// committed: true
}
