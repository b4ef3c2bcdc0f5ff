// Command first runs its own tool and the built-in file tools in one
// transaction, and reverts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

func main() {
	dir, err := os.MkdirTemp("", "remit-first-")
	if err == nil {
		err = run(context.Background(), dir)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	upper, err := tool.Create("upper", "Upper-case a text.",
		func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	if err != nil {
		return err
	}
	rt, err := agent.New( // the workspace policy, and a journal in memory
		agent.Tools(upper), agent.Tools(builtin.Files()...), agent.Root("workspace", dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	s, err := rt.Session(ctx, perm.Principal{ID: "coder"})
	if err != nil {
		return err
	}
	id, err := s.Update(ctx, func(tx *agent.Txn) error { // commits on nil, reverts on error or panic
		greeting, err := tx.Invoke(ctx, "upper", "hi")
		if err != nil {
			return err
		}
		if _, err := tx.Invoke(ctx, "file_write", tool.Args{"path": "a.txt", "content": greeting.Text}); err != nil {
			return err
		}
		_, err = tx.Invoke(ctx, "file_write", tool.Args{"path": ".git/config", "content": "no"})
		if !errors.Is(err, tool.ErrDenied) {
			return fmt.Errorf("the policy let a write to .git through: %w", err)
		}
		fmt.Println(err)
		return nil
	})
	if err != nil {
		return err
	}
	content, err := os.ReadFile(dir + "/a.txt")
	fmt.Printf("committed: a.txt holds %q (%v)\n", content, err)

	report, err := s.Revert(ctx, id, revert.Options{}) // also after commit
	if err != nil {
		return err
	}
	_, err = os.Stat(dir + "/a.txt")
	fmt.Printf("%s: a.txt is gone: %v\n", report.State, errors.Is(err, os.ErrNotExist))
	return nil
}
