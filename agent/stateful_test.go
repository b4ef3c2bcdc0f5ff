package agent_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/toolstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
)

var callOf = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]().Call

// list is what the tool of these tests holds.
type list struct {
	Items []string `json:"items"`
	Calls int      `json:"calls"`
}

type item struct {
	Text string `json:"text"`
	Fail string `json:"fail,omitempty"`
}

type listed struct {
	Items   []string `json:"items"`
	IsError bool     `json:"isError,omitempty"`
}

// remembering makes a tool that adds to its list, and can write the list to a file, and
// fail, each after that.
func remembering(t *testing.T, name string, begun *int) tool.Tool {
	begin := func(context.Context, ctxperm.ToolContext) (list, error) {
		if begun != nil {
			*begun++
		}
		return list{Items: []string{}}, nil
	}
	add := func(ctx context.Context, tc ctxperm.ToolContext, in item, was list) (listed, list, error) {
		was.Items = append(was.Items, in.Text)
		was.Calls++
		out := listed{Items: was.Items}
		if strings.HasSuffix(in.Text, "!") {
			r, err := files.Open(tc, "workspace")
			if err == nil {
				err = r.Write(ctx, name+".txt", []byte(strings.Join(was.Items, " ")), files.WriteOptions{})
			}
			if err != nil {
				return out, was, err
			}
		}
		switch in.Fail {
		case "error":
			return out, was, errors.New("it went wrong")
		case "panic":
			panic("wrong")
		case "isError":
			out.IsError = true
		}
		return out, was, nil
	}
	needs := []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**"), perm.Access(perm.Read, "file://workspace/**")}
	tl, err := tool.Stateful(name, "Remembers.", needs, begin, add, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	return mustTool(t, tl, err)
}

func onDisk(t *testing.T, dir string) journal.Journal {
	j, err := sqlite.Open(context.Background(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func foreignRoots(t *testing.T, rt *agent.Runtime, s *agent.Session, name string) string {
	now, err := toolstate.Newest(context.Background(), rt.Journal(), s.ID(), name)
	require.NoError(t, err)
	if now.Content == nil {
		return "nothing"
	}
	r, err := rt.Journal().OpenContent(context.Background(), *now.Content)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	raw, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(raw)
}

func adds(t *testing.T, tx *agent.Txn, name, text string) {
	out, err := tx.Invoke(context.Background(), name, tool.Args{"text": text})
	require.NoError(t, err, "%+v", out)
}

// TestStateGoesWithItsCalls checks that each kind of revert also reverts the
// state that the calls left. A redo restores the state.
func TestStateGoesWithItsCalls(t *testing.T) {
	ctx := context.Background()
	begun := 0
	rt := newRuntime(t, agent.Tools(remembering(t, "todo", &begun)), agent.Root("workspace", t.TempDir()), agent.Journal(onDisk(t, t.TempDir())))
	s := newSession(t, rt)
	require.Equal(t, "nothing", foreignRoots(t, rt, s, "todo"))

	tx := begin(t, s)
	adds(t, tx, "todo", "a")
	require.NoError(t, tx.Savepoint(ctx, "p"))
	adds(t, tx, "todo", "b")
	require.Equal(t, `{"calls":2,"items":["a","b"]}`, foreignRoots(t, rt, s, "todo"))
	rep, err := tx.RevertTo(ctx, "p")
	require.NoError(t, err, "%+v", rep)
	require.Equal(t, `{"calls":1,"items":["a"]}`, foreignRoots(t, rt, s, "todo"))

	in := nest(t, tx, s)
	adds(t, in, "todo", "c")
	_, err = in.Revert(ctx, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, `{"calls":1,"items":["a"]}`, foreignRoots(t, rt, s, "todo"))
	require.NoError(t, tx.Commit(ctx))

	second, err := s.Update(ctx, func(tx *agent.Txn) error {
		adds(t, tx, "todo", "d")
		return nil
	})
	require.NoError(t, err)
	rep, err = s.Revert(ctx, tx.ID(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert, "a later call changed it on top")
	require.Equal(t, effect.Conflict, rep.Items[0].Outcome)
	require.Contains(t, rep.Items[0].Why, "changed it later")
	_, err = s.Revert(ctx, second, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, `{"calls":1,"items":["a"]}`, foreignRoots(t, rt, s, "todo"))
	_, err = s.Redo(ctx, second)
	require.NoError(t, err)
	require.Equal(t, `{"calls":2,"items":["a","d"]}`, foreignRoots(t, rt, s, "todo"))
	_, err = s.Revert(ctx, tx.ID(), revert.Options{Cascade: true})
	require.NoError(t, err)
	require.Equal(t, "nothing", foreignRoots(t, rt, s, "todo"))
	require.Equal(t, 1, begun)
	adds(t, begin(t, s), "todo", "e")
	require.Equal(t, 2, begun, "there was none any more")
	fsckClean(t, rt)
}

// TestStateOfAFailedCall is as it was before.
func TestStateOfAFailedCall(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	deny := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Allow
		if strings.Contains(string(r.Call.Args), "denied") {
			effect = perm.Deny
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), nil
	})
	rt := newRuntime(t, agent.Tools(remembering(t, "todo", nil)), agent.Root("workspace", dir), agent.Policy(deny))
	s := newSession(t, rt)
	tx := begin(t, s)
	adds(t, tx, "todo", "a!")
	was, before := foreignRoots(t, rt, s, "todo"), tree(t, dir)
	for _, in := range []item{{"x!", "error"}, {"x!", "panic"}, {"x!", "isError"}, {"denied", ""}} {
		out, err := tx.Invoke(ctx, "todo", tool.Args{"text": in.Text, "fail": in.Fail})
		require.Error(t, err)
		require.Contains(t, []tool.Status{tool.StatusFailed, tool.StatusDenied}, out.Status, "%+v", out)
		require.Equal(t, was, foreignRoots(t, rt, s, "todo"))
		require.Equal(t, before, tree(t, dir), "what it did besides is gone too")
	}
	adds(t, tx, "todo", "b")
	require.Equal(t, `{"calls":2,"items":["a!","b"]}`, foreignRoots(t, rt, s, "todo"))
}

// TestStateBelongsToASession that is resumed by its token; another one has its own.
func TestStateBelongsToASession(t *testing.T) {
	ctx := context.Background()
	journal, dir := t.TempDir(), t.TempDir()
	open := func() (*agent.Runtime, func()) {
		j, err := sqlite.Open(ctx, journal)
		require.NoError(t, err)
		rt, err := agent.New(quiet(), agent.Tools(remembering(t, "todo", nil), remembering(t, "other", nil)), agent.Root("workspace", dir), agent.Journal(j))
		require.NoError(t, err)
		return rt, func() {
			require.NoError(t, rt.Close())
			require.NoError(t, j.Close())
		}
	}
	rt, end := open()
	s := newSession(t, rt)
	_, err := s.Update(ctx, func(tx *agent.Txn) error {
		adds(t, tx, "todo", "a")
		adds(t, tx, "other", "b")
		return nil
	})
	require.NoError(t, err)
	token := s.Token()
	end()

	rt, end = open()
	defer end()
	stranger := newSession(t, rt)
	require.Equal(t, "nothing", foreignRoots(t, rt, stranger, "todo"))
	s, err = rt.ResumeSession(ctx, token)
	require.NoError(t, err)
	adds(t, begin(t, s), "todo", "c")
	require.Equal(t, `{"calls":2,"items":["a","c"]}`, foreignRoots(t, rt, s, "todo"))
	require.Equal(t, `{"calls":1,"items":["b"]}`, foreignRoots(t, rt, s, "other"))
	adds(t, begin(t, stranger), "todo", "z")
	require.Equal(t, `{"calls":1,"items":["z"]}`, foreignRoots(t, rt, stranger, "todo"))
}

// TestCallsOnAStateComeOneAfterTheOther in a transaction and those inside it; another
// transaction of the session is told who has it.
func TestCallsOnAStateComeOneAfterTheOther(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(remembering(t, "todo", nil), remembering(t, "other", nil)), agent.Root("workspace", t.TempDir()))
	s := newSession(t, rt)
	tx := begin(t, s)
	all := []*agent.Txn{tx, nest(t, tx, s), nest(t, tx, s)}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			_, err := all[i%3].Invoke(ctx, "todo", tool.Args{"text": "x"})
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Contains(t, foreignRoots(t, rt, s, "todo"), `"calls":24`)

	beside := begin(t, s)
	adds(t, beside, "other", "free")
	out, err := beside.Invoke(ctx, "todo", tool.Args{"text": "y"})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, out.Error.Why, "held by transaction "+tx.ID())
	for _, in := range all[1:] {
		require.NoError(t, in.Commit(ctx))
	}
	require.NoError(t, tx.Commit(ctx))
	adds(t, beside, "todo", "y")
	require.Contains(t, foreignRoots(t, rt, s, "todo"), `"calls":25`)
}

// TestStateThatStaysAsItIs: a call that leaves the state as it was has changed nothing.
func TestStateThatStaysAsItIs(t *testing.T) {
	none := func(context.Context, ctxperm.ToolContext) (list, error) { return list{Items: []string{}}, nil }
	set := func(_ context.Context, _ ctxperm.ToolContext, in item, was list) (listed, list, error) {
		return listed{}, list{Items: []string{in.Text}}, nil
	}
	tl, err := tool.Stateful("last", "Remembers the last.", nil, none, set, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)))
	tx := begin(t, newSession(t, rt))
	for _, text := range []string{"a", "a", "b"} {
		_, err := tx.Invoke(t.Context(), "last", tool.Args{"text": text})
		require.NoError(t, err)
	}
	txn, err := revert.Load(t.Context(), rt.Journal(), tx.ID())
	require.NoError(t, err)
	for i, changes := range []int{1, 0, 1} {
		require.Len(t, txn.Calls[i].Changes, changes, i)
	}
}

// TestStateUnderOtherSettings: a change of settings does not begin the state anew.
func TestStateUnderOtherSettings(t *testing.T) {
	ctx := t.Context()
	begun := 0
	type seen struct{ By []string }
	none := func(context.Context, ctxperm.ToolContext) (seen, error) {
		begun++
		return seen{}, nil
	}
	add := func(_ context.Context, tc ctxperm.ToolContext, _ item, was seen) (listed, seen, error) {
		was.By = append(was.By, string(callOf(tc).Config().Settings))
		return listed{}, was, nil
	}
	tl, err := tool.Stateful("sees", "Remembers its settings.", nil, none, add, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	tl, err = mustTool(t, tl, err).Modify(func(s *tool.Spec) { s.Settings = tool.Params{{Name: "of", Type: "string", Required: true}} })
	tl = mustTool(t, tl, err)
	with := func(of string) tool.Tool {
		c, _, err := tl.Configure(ctx, []byte(`{"of":"`+of+`"}`))
		require.NoError(t, err)
		return c
	}
	rt := newRuntime(t, agent.Tools(with("a")))
	s := newSession(t, rt)
	tx := begin(t, s)
	adds(t, tx, "sees", "x")
	require.NoError(t, rt.SetTools(with("b")))
	adds(t, tx, "sees", "x")
	require.Equal(t, 1, begun)
	require.JSONEq(t, `{"By":["{\"of\":\"a\"}","{\"of\":\"b\"}"]}`, foreignRoots(t, rt, s, "sees"))
}

// TestStateBeyondTheLimits fails its call, and leaves the state as it was.
func TestStateBeyondTheLimits(t *testing.T) {
	type deep struct{ In *deep }
	none := func(context.Context, ctxperm.ToolContext) (deep, error) { return deep{}, nil }
	add := func(_ context.Context, _ ctxperm.ToolContext, in item, was deep) (listed, deep, error) {
		for range len(in.Text) {
			below := was
			was = deep{&below}
		}
		return listed{}, was, nil
	}
	tl, err := tool.Stateful("digs", "Goes deeper.", nil, none, add, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	rt := newRuntime(t, agent.Tools(mustTool(t, tl, err)))
	s := newSession(t, rt)
	tx := begin(t, s)
	adds(t, tx, "digs", strings.Repeat("x", 50))
	was := foreignRoots(t, rt, s, "digs")
	out, err := tx.Invoke(t.Context(), "digs", tool.Args{"text": strings.Repeat("x", 100)})
	require.ErrorIs(t, err, tool.ErrFailed)
	require.Contains(t, out.Error.Why, "the state that the call left: invalid JSON")
	require.Equal(t, was, foreignRoots(t, rt, s, "digs"))
	adds(t, tx, "digs", "x")
}
