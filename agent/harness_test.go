package agent_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// allowAll is the control beside every test of a denial: a policy that lets
// everything through.
func allowAll() perm.Engine {
	return perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})
}

func quiet() agent.Option {
	return agent.Log(slog.New(slog.DiscardHandler))
}

func newRuntime(t *testing.T, opts ...agent.Option) *agent.Runtime {
	rt, err := agent.New(append([]agent.Option{quiet()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	return rt
}

func newSession(t *testing.T, rt *agent.Runtime, opts ...agent.SessionOption) *agent.Session {
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"}, opts...)
	require.NoError(t, err)
	return s
}

func begin(t *testing.T, s *agent.Session) *agent.Txn {
	tx, err := s.Begin(context.Background())
	require.NoError(t, err)
	return tx
}

func mustTool(t *testing.T, tl tool.Tool, err error) tool.Tool {
	require.NoError(t, err)
	return tl
}

// tree is every file below a folder with its content, for comparing before and
// after.
func tree(t *testing.T, dir string) map[string]string {
	m := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			m[name] = info.Mode().String()
			return err
		}
		data, err := os.ReadFile(path)
		m[name] = info.Mode().String() + " " + info.ModTime().String() + " " + string(data)
		return err
	}))
	return m
}
