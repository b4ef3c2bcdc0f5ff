package guides_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	_ "embed"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// release is the first tool that the guide grades.
var release = func() tool.Tool {
	made, err := tool.CreateWith("release", "Set the version.", []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/VERSION")},
		func(ctx context.Context, tc ctxperm.ToolContext, version string) (string, error) {
			f, err := files.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			return "set", f.Write(ctx, "VERSION", []byte(version), files.WriteOptions{})
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	if err != nil {
		panic(err)
	}
	return made
}()

// guide: guides/grade.md
func TestGrade(t *testing.T) {
	r := reverttest.Test(t, release, provenance.CrashUndoable, reverttest.Config{
		NewEnv: func(*reverttest.Wire) (reverttest.TestEnv, error) {
			return reverttest.TestEnv{Files: map[string]string{"VERSION": "1.0"}}, nil
		},
		Inputs: []any{"1.1"},
		Seed:   1,
	})
	reverttest.SaveGrades(t, "grades.json", r)
}

// end of guide

// guide: guides/grade.md

//go:embed grades.json
var grades []byte

// end of guide

func gradedRelease() (tool.Tool, error) {
	// guide: guides/grade.md
	graded, err := release.Graded(grades)
	// end of guide
	return graded, err
}

// TestDecideByGrade checks that the policy uses the grade in the file.
func TestDecideByGrade(t *testing.T) {
	graded, err := gradedRelease()
	require.NoError(t, err)
	engine := open(t, take(t, "guides/grade.md", "rego", 0)+`allow contains "the tool may be called" if input.access.resource.kind == "tool"`)
	for _, tt := range []struct {
		tool tool.Tool
		want error
	}{{graded, nil}, {release, tool.ErrPending}} {
		rt, _ := runtime(t, agent.Tools(tt.tool), agent.SuspendForApproval(), agent.Policy(engine))
		_, err = call(t, session(t, rt), "release", "1.1")
		require.ErrorIs(t, err, tt.want)
	}
}

// fakeMail is a list of posts that other writers can edit, and a ledger whose
// entries stay.
type fakeMail struct {
	wire *reverttest.Wire

	mu     sync.Mutex
	posts  map[string]string
	ledger map[string]string
}

func newFake(w *reverttest.Wire) *fakeMail {
	return &fakeMail{wire: w, posts: map[string]string{"welcome": "hello"}, ledger: map[string]string{}}
}

func (f *fakeMail) put(key, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.ledger[key]; known {
		return // a key counts once
	}
	f.posts[key], f.ledger[key] = text, "posted"
}

func (f *fakeMail) Posts() (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.posts), nil
}

func (f *fakeMail) Ledger() (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.ledger), nil
}

func (f *fakeMail) Edit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.posts {
		f.posts[key] = "edited"
	}
	return nil
}

func (f *fakeMail) has(key string) (text string, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, there = f.posts[key]
	return text, there
}

// Remove deletes an unchanged post.
func (f *fakeMail) Remove(ctx context.Context, key, text string) error {
	return f.wire.Send(ctx, "remove", func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.posts[key] == text {
			delete(f.posts, key)
		}
	})
}

type fakeKey struct{}

func withFake(ctx context.Context, f *fakeMail) context.Context {
	return context.WithValue(ctx, fakeKey{}, f)
}

func newTool(f *fakeMail) (tool.Tool, error) {
	text := func(in json.RawMessage) (s string) { _ = json.Unmarshal(in, &s); return s }
	// guide: guides/revert-tool.md
	return tool.CreateWith("post", "Posts a text.", nil,
		func(ctx context.Context, tc ctxperm.ToolContext, in string) (string, error) {
			if err := tc.Note(ctx, "key", tc.Call().Key); err != nil {
				return "", tool.NoEffect(err)
			}
			return "posted", f.Post(ctx, tc.Call().Key, in)
		},
		tool.Effect(effect.Compensable),
		tool.VerifyWith(func(_ context.Context, s verify.Subject) verify.Verdict {
			if got, there := f.has(text(s.Notes["key"])); there && got == text(s.Input) {
				return verify.Applied()
			}
			if s.Phase == verify.Recovery {
				return verify.CannotTell("it may still be on its way")
			}
			return verify.Absent()
		}),
		tool.RevertWith("1", func(ctx context.Context, rc tool.RevertContext) error {
			switch got, there := f.has(rc.Key); {
			case !there:
				return nil
			case got != text(rc.Input):
				return errors.New("the post was edited")
			}
			return f.Remove(ctx, rc.Key, text(rc.Input))
		}))
	// end of guide
}

// guide: guides/grade.md
func (f *fakeMail) Post(ctx context.Context, key, text string) error {
	return f.wire.Send(ctx, "post", func() { f.put(key, text) }) // not under a lock that others wait for
}

func newTestEnv(w *reverttest.Wire) (reverttest.TestEnv, error) {
	f := newFake(w)
	return reverttest.TestEnv{
		Snapshot: f.Posts,                                         // what a revert must restore
		Traces:   f.Ledger,                                        // what a revert may leave
		Foreign:  map[string]func() error{"edits a post": f.Edit}, // a change by another program after the call
		Context:  func(ctx context.Context) context.Context { return withFake(ctx, f) },
		Tool:     func() (tool.Tool, error) { return newTool(f) }, // for each process: the memory of the previous one is gone
	}, nil
}

// end of guide

func TestGradeOfAService(t *testing.T) {
	post, err := newTool(newFake(nil))
	require.NoError(t, err)
	reverttest.Test(t, post, provenance.Compensable, reverttest.Config{NewEnv: newTestEnv, Inputs: []any{"news"}, Seed: 1, Runs: 60})
}

// recordedFailure records the message with which a test would have failed.
type recordedFailure struct {
	testing.TB
	text string
}

func (t *recordedFailure) Name() string                   { return "TestGrade" }
func (t *recordedFailure) Errorf(format string, a ...any) { t.text += fmt.Sprintf(format, a...) }

// TestGradeStory checks that the guide shows a finding as the kit prints it.
func TestGradeStory(t *testing.T) {
	want := take(t, "guides/grade.md", "text", 0)
	shelf := func(w *reverttest.Wire) (reverttest.TestEnv, error) {
		f := &fakeMail{wire: w, posts: map[string]string{"a": "old a", "b": "old b"}}
		return reverttest.TestEnv{Snapshot: f.Posts, Context: func(ctx context.Context) context.Context { return withFake(ctx, f) }}, nil
	}
	put := func(ctx context.Context, change func(was string) string) error {
		f, _ := ctx.Value(fakeKey{}).(*fakeMail)
		was, _ := f.has("a")
		return f.wire.Do(ctx, "put a", func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.posts["a"] = change(was)
		})
	}
	twice, err := tool.CreateWith("twice", "Puts texts on a shelf.", nil,
		func(ctx context.Context, _ ctxperm.ToolContext, in string) (string, error) {
			return "put", put(ctx, func(was string) string { return was + in })
		},
		tool.Effect(effect.Compensable),
		tool.RevertWith("1", func(ctx context.Context, rc tool.RevertContext) error {
			var in string
			if err := json.Unmarshal(rc.Input, &in); err != nil {
				return err
			}
			return put(ctx, func(was string) string { return was[:max(len(was)-len(in), 0)] })
		}))
	require.NoError(t, err)
	out := &recordedFailure{TB: t}
	reverttest.Test(out, twice, provenance.CrashUndoable, reverttest.Config{NewEnv: shelf, Inputs: []any{"new"}, Seed: 1, Runs: 300})
	require.Equal(t, want, out.text+"\n")
}
