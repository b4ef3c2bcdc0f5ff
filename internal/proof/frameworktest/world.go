package frameworktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

const policy = `package remit

allow contains "it is a test"

ask contains "a person decides" if {
	input.access.resource.kind == "tool"
	input.access.resource.name == "ask_first"
}

deny contains "the history of the repository is out of reach" if input.access.resource.segments[0] == ".git"
`

// testEnv is a workspace, and a session with tools for it.
type testEnv struct {
	t       *testing.T
	dir     string
	rt      *agent.Runtime
	session *agent.Session
	count   atomic.Int64 // how often the tool of that name ran
}

func newTestEnv(t *testing.T) *testEnv {
	w := &testEnv{t: t, dir: t.TempDir()}
	for name, mode := range map[string]fs.FileMode{"a.txt": 0o640, "sub/b.txt": 0o600, ".git/config": 0o644} {
		path := filepath.Join(w.dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte("content of "+name), mode))
	}
	rules, err := rego.Load(rego.Source{FS: fstest.MapFS{"policy.rego": {Data: []byte(policy)}}})
	require.NoError(t, err)
	w.rt, err = agent.New(agent.Tools(builtin.Files()...), agent.Tools(w.tools()...), agent.Root("workspace", w.dir),
		agent.Policy(rules), agent.SuspendForApproval(), agent.Log(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.rt.Close()) })
	w.session, err = w.rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return w
}

func (w *testEnv) tools() (list []tool.Tool) {
	add := func(name string, execute func(in string) (string, error), opts ...tool.Option) {
		made, err := tool.Create(name, "For a test.", func(_ context.Context, in string) (string, error) { return execute(in) }, opts...)
		require.NoError(w.t, err)
		list = append(list, made)
	}
	add("say", func(in string) (string, error) { return strings.ToUpper(in), nil }, tool.Pure())
	add("fail", func(string) (string, error) { return "", errors.New("it is broken") }, tool.Pure())
	add("ask_first", func(string) (string, error) { return "done", nil }, tool.Effect(effect.Pivot))
	add("panic", func(string) (string, error) { panic("a bug") }, tool.Effect(effect.Pivot))
	add("count", func(string) (string, error) { return fmt.Sprintf("run %d", w.count.Add(1)), nil }, tool.Effect(effect.Pivot))
	return list
}

// tree returns the mode and the content of every file in the workspace.
func (w *testEnv) tree() map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.dir, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(name)] = info.Mode().String()
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			out[filepath.ToSlash(name)] += " " + string(content)
			return err
		}
		return nil
	})
	require.NoError(w.t, err)
	return out
}

// journal returns the records of each call of a transaction.
func (w *testEnv) journal(txn string) map[string][]record.Kind {
	out := map[string][]record.Kind{}
	for e, err := range w.rt.Journal().Entries(w.t.Context(), journal.Query{Txn: txn}) {
		require.NoError(w.t, err)
		out[e.Header.Call] = append(out[e.Header.Call], e.Header.Kind)
	}
	return out
}
