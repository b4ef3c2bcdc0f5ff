package define_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/define"
)

// put writes a definition as careful editors do: whole, under its name.
func put(t testing.TB, dir, name, text string) {
	t.Helper()
	beside := filepath.Join(dir, "."+name)
	require.NoError(t, os.WriteFile(beside, []byte(text), 0o644))
	require.NoError(t, os.Rename(beside, filepath.Join(dir, name)))
}

// bare is goodNote without settings, so that it needs none.
func bare() string {
	return strings.Replace(goodNote, `  "settings": {"folder": {"type": "string", "default": "."}},`+"\n", "", 1)
}

// liveSetup is a runtime whose tools come from a folder.
type liveSetup struct {
	dir, work string
	rt        *agent.Runtime
	live      *define.Watcher
}

func newLiveSetup(t *testing.T, policy agent.Option) liveSetup {
	h := liveSetup{dir: t.TempDir(), work: t.TempDir()}
	put(t, h.dir, "note.json", bare())
	var err error
	h.rt, err = agent.New(quiet(), policy, agent.SuspendForApproval(), agent.Root("workspace", h.work))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.rt.Close()) })
	h.live, err = define.Open(h.dir, implementations(t), func(tools []tool.Tool) error { return h.rt.SetTools(tools...) }, define.AllowUnused())
	require.NoError(t, err)
	return h
}

func (h liveSetup) begin(t *testing.T) *agent.Txn {
	s, err := h.rt.Session(t.Context(), perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: "chat"}))
	require.NoError(t, err)
	tx, err := s.Begin(t.Context())
	require.NoError(t, err)
	return tx
}

// TestAChangedDefinition checks that approvals and grades of the old definition
// do not count for the new one. The runtime can still revert calls of the old
// one.
func TestAChangedDefinition(t *testing.T) {
	asks := agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "look"}}}), nil
	}))
	h := newLiveSetup(t, asks)
	ctx, tx := t.Context(), h.begin(t)
	write := func(path string) (tool.Outcome, error) {
		return tx.Invoke(ctx, "note", tool.Args{"path": path, "text": "x"})
	}
	out, err := write("a.txt")
	require.ErrorIs(t, err, tool.ErrPending)
	_, err = h.rt.RememberApproval(ctx, agent.Answer{Call: out.Call, Approved: true, By: "kim"}, ctxperm.RememberScope{Always: true})
	require.NoError(t, err)
	_, err = tx.Resume(ctx, out.Call)
	require.NoError(t, err)
	_, err = write("a.txt")
	require.NoError(t, err, "it is remembered")
	require.FileExists(t, filepath.Join(h.work, "a.txt"))
	waits, err := write("b.txt")
	require.ErrorIs(t, err, tool.ErrPending)
	require.NoError(t, h.rt.Answer(ctx, agent.Answer{Call: waits.Call, Approved: true, By: "kim"}))

	was := h.rt.Tools().All()[0]
	put(t, h.dir, "note.json", strings.Replace(bare(), "Writes a note.", "Writes whatever it likes.", 1))
	changed, err := h.live.Reload()
	require.NoError(t, err)
	require.True(t, changed)
	require.NotEqual(t, was.Digest(), h.rt.Tools().All()[0].Digest())
	_, err = write("a.txt")
	require.ErrorIs(t, err, tool.ErrPending, "what was remembered is of the old declaration")
	denied, err := tx.Resume(ctx, waits.Call)
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, denied.Error.Why, "the tool, the policy or the input has changed since")
	require.NoFileExists(t, filepath.Join(h.work, "b.txt"))

	require.NoError(t, os.Remove(filepath.Join(h.dir, "note.json")))
	changed, err = h.live.Reload()
	require.NoError(t, err)
	require.True(t, changed)
	require.Empty(t, h.rt.Tools().Names())
	_, err = tx.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(h.work, "a.txt"), "undone, although the tool is gone")
}

// TestABadFileLeavesTheOldSet in force, and says so.
func TestABadFileLeavesTheOldSet(t *testing.T) {
	h := newLiveSetup(t, allow())
	was := h.rt.Tools().All()[0].Digest()
	changed, err := h.live.Reload()
	require.NoError(t, err)
	require.False(t, changed, "nothing has")
	put(t, h.dir, "other.json", `{"schemaVersion": 1`)
	changed, err = h.live.Reload()
	require.False(t, changed)
	require.EqualError(t, err, "the definitions of "+h.dir+" were not taken, those from before stay:\nother.json:1:20: want ',' or '}' after a member")
	require.Equal(t, was, h.rt.Tools().All()[0].Digest())
	_, err = h.begin(t).Invoke(t.Context(), "note", tool.Args{"path": "a.txt", "text": "x"})
	require.NoError(t, err)

	broken := errors.New("no room")
	put(t, h.dir, "other.json", goodMail)
	refuses := false
	live, err := define.Open(h.dir, implementations(t), func([]tool.Tool) error {
		if refuses {
			return broken
		}
		return nil
	}, define.AllowUnused())
	require.NoError(t, err)
	refuses = true
	require.NoError(t, os.Remove(filepath.Join(h.dir, "other.json")))
	_, err = live.Reload()
	require.ErrorIs(t, err, broken)
	refuses = false
	changed, err = live.Reload()
	require.NoError(t, err)
	require.True(t, changed, "it was not taken before")
	_, err = define.Open(filepath.Join(h.dir, "gone"), nil, func([]tool.Tool) error { return nil })
	require.ErrorContains(t, err, "no such file or directory")
	_, err = define.Open(h.dir, implementations(t), nil)
	require.ErrorContains(t, err, "the function that uses the tools is nil")
}

// TestWatchSeesTheFileSystem: with real events, in the folder and in one that comes later.
func TestWatchSeesTheFileSystem(t *testing.T) {
	h := newLiveSetup(t, allow())
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 64)
	ended := make(chan error, 1)
	go func() { ended <- h.live.Watch(ctx, func(_ bool, err error) { told <- err }) }()
	until := func(what string, is func(err error) bool) {
		t.Helper()
		for {
			select {
			case err := <-told:
				if is(err) {
					return
				}
			case err := <-ended:
				t.Fatalf("%s: the watch ended: %v", what, err)
			}
		}
	}
	has := func(name string) func(error) bool {
		return func(error) bool { _, ok := h.rt.Tools().Get(name); return ok }
	}
	until("the first look", func(err error) bool { return err == nil })
	put(t, h.dir, "note.json", strings.Replace(bare(), `"name": "note"`, `"name": "jot"`, 1))
	until("a changed file", has("jot"))
	put(t, h.dir, "bad.json", "{")
	until("a bad file", func(err error) bool { return err != nil })
	require.True(t, has("jot")(nil))
	require.NoError(t, os.Remove(filepath.Join(h.dir, "bad.json")))
	inner := filepath.Join(h.dir, "more")
	require.NoError(t, os.Mkdir(inner, 0o755))
	put(t, inner, "mail.json", goodMail)
	until("a folder that came later", has("mail"))
	put(t, inner, "mail.json", strings.Replace(goodMail, `"name":"mail"`, `"name":"post"`, 1))
	until("a change in there", has("post"))
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Error(t, h.live.Watch(ctx, func(bool, error) {}), "ctx has ended")
}
