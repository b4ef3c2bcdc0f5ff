//go:build unix

package compose_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

const killedIn, killedAt = "REMIT_COMPOSE_KILLED_IN", "REMIT_COMPOSE_KILLED_AT"

// exitingTool is a part that ends its process, where it is told to.
func (s *shop) exitingTool(name string) tool.Tool {
	t, err := tool.CreateTyped(name, "Dies.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
		if os.Getenv(killedAt) == name {
			return in, syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return in, nil
	}, tool.Pure())
	require.NoError(s.t, err)
	return t
}

func (s *shop) newKilledRuntime(dir string) (rt *agent.Runtime, end func()) {
	whole, err := compose.Chain(compose.Declaration{Name: "whole", Description: "All of it."},
		compose.Part{Tool: s.exitingTool("d1")}, compose.Part{Tool: s.put("put")}, compose.Part{Tool: s.exitingTool("d2")},
		compose.Part{Tool: s.looked("book")}, compose.Part{Tool: s.exitingTool("d3")}, compose.Part{Tool: s.looked("more")}, compose.Part{Tool: s.exitingTool("d4")})
	require.NoError(s.t, err)
	j, err := sqlite.Open(context.Background(), filepath.Join(dir, "journal"))
	require.NoError(s.t, err)
	rt = s.runtime([]agent.Option{agent.Journal(j)}, whole)
	return rt, func() { require.NoError(s.t, j.Close()) }
}

// TestPartsOfADeadProcess: a process dies between two parts, or when all is done. Another
// one reverts what the parts did, each by its own way back, from what was noted.
func TestPartsOfADeadProcess(t *testing.T) {
	ctx := context.Background()
	if dir := os.Getenv(killedIn); dir != "" {
		s := &shop{t: t, dir: filepath.Join(dir, "work"), ledger: filepath.Join(dir, "ledger")}
		rt, _ := s.newKilledRuntime(dir)
		tx := begin(t, session(t, rt))
		_, err := tx.Invoke(ctx, "whole", line{"a", "x"})
		require.NoError(t, err)
		require.NoError(t, tx.Commit(ctx))
		return
	}
	for _, at := range []string{"d1", "d2", "d3", "d4", "none"} {
		t.Run(at, func(t *testing.T) {
			dir := t.TempDir()
			s := &shop{t: t, dir: filepath.Join(dir, "work"), ledger: filepath.Join(dir, "ledger")}
			require.NoError(t, os.Mkdir(s.dir, 0o700))
			require.NoError(t, os.Mkdir(s.ledger, 0o700))
			before := s.state()
			cmd := exec.Command(os.Args[0], "-test.run=^TestPartsOfADeadProcess$")
			cmd.Env = append(os.Environ(), killedIn+"="+dir, killedAt+"="+at)
			out, err := cmd.CombinedOutput()
			require.Equal(t, at == "none", err == nil, "%s", out)
			require.Len(t, s.orders(), map[string]int{"d1": 0, "d2": 0, "d3": 1, "d4": 2, "none": 2}[at])

			rt, end := s.newKilledRuntime(dir)
			defer end()
			found, err := rt.Recover(ctx)
			require.NoError(t, err, "%+v", found)
			txn := ""
			for e, err := range rt.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, Limit: 1}) {
				require.NoError(t, err)
				txn = e.Header.Txn
			}
			rep, err := rt.Revert(ctx, txn, revert.Options{})
			require.NoError(t, err, "%+v %+v", found, rep)
			require.Equal(t, before, s.state(), "%+v", rep)
		})
	}
}
