package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
)

var about = compose.Declaration{Name: "whole", Description: "All of it."}

func denying(text string) agent.Option {
	return agent.Policy(perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		effect := perm.Allow
		if strings.Contains(r.Access.Resource.Text, text) {
			effect = perm.Deny
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "so"}}}), nil
	}))
}

// TestEachPartIsAskedFor checks that the runtime authorizes each part before it
// runs. The access is the file that the input of the part names, or the tool
// itself.
func TestEachPartIsAskedFor(t *testing.T) {
	ctx := context.Background()
	for _, denied := range []string{"tool://book", "file://workspace/b"} {
		s := newShop(t)
		other := compose.Part{Tool: s.put("put"), Input: func(raw json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"path":"b","text":"y"}`), nil
		}}
		whole, err := compose.Chain(about, compose.Part{Tool: s.put("first")}, compose.Part{Tool: s.book("book")}, other)
		require.NoError(t, err)
		before := s.state()
		tx := begin(t, session(t, s.runtime([]agent.Option{denying(denied)}, whole)))
		out, err := tx.Invoke(ctx, "whole", line{"a", "x"})
		require.ErrorIs(t, err, tool.ErrDenied, "%+v", out)
		require.Equal(t, before, s.state())

		free := begin(t, session(t, s.runtime(nil, whole)))
		_, err = free.Invoke(ctx, "whole", line{"a", "x"})
		require.NoError(t, err, "the control")
		_, err = free.Revert(ctx, revert.Options{})
		require.NoError(t, err)

		whole, err = compose.Fallback(about, compose.Part{Tool: s.book("book")}, other)
		require.NoError(t, err)
		whole, err = whole.Modify(func(spec *tool.Spec) { spec.Name = "other" })
		require.NoError(t, err)
		tx = begin(t, session(t, s.runtime([]agent.Option{denying("tool://book")}, whole)))
		out, err = tx.Invoke(ctx, "other", line{"a", "x"})
		require.ErrorIs(t, err, tool.ErrDenied, "a fallback is no way round a denial: %+v", out)
		require.Equal(t, before, s.state())
	}
}

// TestAPartReachesNoFurtherThanAlone, also where another part may.
func TestAPartReachesNoFurtherThanAlone(t *testing.T) {
	s := newShop(t)
	sly, err := tool.CreateTyped("sly", "Writes elsewhere.", []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/sly")},
		func(ctx context.Context, tc ctxperm.ToolContext, in line) (line, error) {
			f, err := files.Open(tc, "workspace")
			if err == nil {
				err = f.Write(ctx, in.Path, []byte("sly"), files.WriteOptions{})
			}
			return in, err
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	require.NoError(t, err)
	whole, err := compose.Chain(about, compose.Part{Tool: s.put("put")}, compose.Part{Tool: sly})
	require.NoError(t, err)
	before := s.state()
	tx := begin(t, session(t, s.runtime(nil, whole)))
	out, err := tx.Invoke(context.Background(), "whole", line{"a", "x"})
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, out.Error.Why, "the tool sly does not declare")
	require.Equal(t, before, s.state())
}

// TestDeclarations of what is composed.
func TestDeclarations(t *testing.T) {
	s := newShop(t)
	put, book, upper := s.put("put"), s.looked("book"), s.upper("upper")
	whole, err := compose.Chain(about, compose.Part{Tool: put}, compose.Part{Tool: upper})
	require.NoError(t, err)
	spec := whole.Spec()
	require.Equal(t, tool.Trusted, spec.Confinement, "upper is")
	require.Equal(t, effect.Reversible, whole.Class())
	require.Equal(t, tool.ModelChosen, spec.Destination)
	require.Contains(t, spec.Provenance.Name, "chain: put "+put.Digest())
	changed, err := put.Modify(func(s *tool.Spec) { s.Description += " Better." })
	require.NoError(t, err)
	again, err := compose.Chain(about, compose.Part{Tool: changed}, compose.Part{Tool: upper})
	require.NoError(t, err)
	require.NotEqual(t, whole.Digest(), again.Digest())
	handles, err := compose.Parallel(about, compose.Part{Tool: put}, compose.Part{Tool: s.put("too")})
	require.NoError(t, err)
	require.Equal(t, tool.Handles, handles.Spec().Confinement)
	require.False(t, handles.CanVerify())
	mixed, err := compose.Fallback(about, compose.Part{Tool: put}, compose.Part{Tool: book})
	require.NoError(t, err)
	require.True(t, mixed.Verifier().IsPresent())
	require.NotEmpty(t, mixed.Spec().UndoVersion)

	counted, err := upper.Modify(func(s *tool.Spec) {
		s.Counters = map[string]string{"n": "n"}
		s.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)
	})
	require.NoError(t, err)
	secret, err := upper.Modify(func(s *tool.Spec) { s.Hints.Sensitive = []string{"text"} })
	require.NoError(t, err)
	scripted, err := upper.Modify(func(s *tool.Spec) { s.ParseScript = func(json.RawMessage) *perm.ScriptFacts { return nil } })
	require.NoError(t, err)
	free, err := tool.Create("free", "Free.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		parts []compose.Part
		says  string
	}{
		"none":      {nil, "there are no parts"},
		"zero":      {[]compose.Part{{}}, "part 1, : it is the zero Tool"},
		"counters":  {[]compose.Part{{Tool: counted}}, "limits its sums by its name"},
		"script":    {[]compose.Part{{Tool: scripted}}, "what its script would run"},
		"sensitive": {[]compose.Part{{Tool: upper}, {Tool: secret}}, "sensitive arguments"},
		"no input":  {[]compose.Part{{Tool: upper, Input: func(in json.RawMessage) (json.RawMessage, error) { return in, nil }}}, "say in About.Input"},
	} {
		_, err := compose.Chain(about, c.parts...)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err = compose.Parallel(about, compose.Part{Tool: upper}, compose.Part{Tool: free})
	require.ErrorContains(t, err, "has another input")
	_, err = compose.Conditional(about, nil, compose.Part{Tool: upper}, compose.Part{Tool: free})
	require.ErrorContains(t, err, "the condition is missing")
	first, err := compose.Chain(about, compose.Part{Tool: secret})
	require.NoError(t, err)
	require.Equal(t, []string{"text"}, first.Spec().Hints.Sensitive)
}

// TestWhatIsRequiredIsRequiredOfEachPart: one part that has a Verify, or a way back, does not
// stand in for another one.
func TestWhatIsRequiredIsRequiredOfEachPart(t *testing.T) {
	s := newShop(t)
	fires, err := tool.CreateTyped("fires", "Fires.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) { return in, nil },
		tool.Effect(effect.Pivot))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		parts   []tool.Tool
		require string
		met     bool
	}{
		"all are looked at":          {[]tool.Tool{s.upper("upper"), s.looked("book"), s.looked("more")}, "verify", true},
		"one is not looked at":       {[]tool.Tool{s.put("put"), s.looked("book")}, "verify", false},
		"nothing is looked at":       {[]tool.Tool{s.upper("upper")}, "verify", false},
		"all have a way back":        {[]tool.Tool{s.put("put"), s.book("book"), s.upper("upper")}, "revert", true},
		"one has no way back":        {[]tool.Tool{s.book("book"), fires}, "revert", false},
		"the only one has none":      {[]tool.Tool{fires}, "revert", false},
		"neither stands in for both": {[]tool.Tool{s.looked("book"), fires}, "verify", false},
	} {
		t.Run(name, func(t *testing.T) {
			var parts []compose.Part
			for _, tl := range tt.parts {
				parts = append(parts, compose.Part{Tool: tl})
			}
			inner, err := compose.Chain(compose.Declaration{Name: "inner", Description: "All of it."}, parts...)
			require.NoError(t, err)
			whole, err := compose.Chain(about, compose.Part{Tool: inner})
			require.NoError(t, err)
			require.Equal(t, tt.met, map[string]bool{"verify": whole.CanVerify(), "revert": whole.CanRevert()}[tt.require])
			facts := whole.Facts()
			require.Equal(t, tt.met, map[string]bool{"verify": facts.CanVerify, "revert": facts.CanRevert}[tt.require])
			demands := agent.Policy(perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
				why := perm.Details{Reasons: []perm.Reason{{Text: "so"}}, Requires: []perm.Reason{{Text: tt.require}}}
				return perm.NewDecision(perm.Allow, why), nil
			}))
			out, err := begin(t, session(t, s.runtime([]agent.Option{demands}, whole))).Invoke(context.Background(), "whole", line{"a", "x"})
			if tt.met {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tool.ErrDenied)
			require.Contains(t, out.Error.Why, "the policy requires")
		})
	}
}

// TestWhatIsIdempotent: of parts that are, what follows from what a part before did is not.
func TestWhatIsIdempotent(t *testing.T) {
	s := newShop(t)
	part := asked(t, s.upper("upper"), func(s *tool.Spec) { s.Hints.Idempotent = true })
	is := func(whole tool.Tool, err error) bool {
		require.NoError(t, err)
		return whole.Spec().Hints.Idempotent
	}
	require.True(t, is(compose.Chain(about, part)))
	require.True(t, is(compose.Parallel(about, part, part)))
	require.True(t, is(compose.Conditional(about, func(json.RawMessage) bool { return true }, part, part)))
	require.False(t, is(compose.Chain(about, part, part)))
	require.False(t, is(compose.Fallback(about, part, part)))
	require.False(t, is(compose.Parallel(about, part, compose.Part{Tool: s.upper("other")})))
}

// TestSideBySide writes much at once, for the race detector.
func TestSideBySide(t *testing.T) {
	ctx := context.Background()
	s := newShop(t)
	var parts []compose.Part
	for i := range 6 {
		p := compose.Part{Tool: s.put("put"), Input: branch(i % 4)} // some share a file
		if i%2 == 1 {
			p.Tool = s.looked("book")
		}
		parts = append(parts, p)
	}
	in := about
	in.Input = lineSchema
	whole, err := compose.Parallel(in, parts...)
	require.NoError(t, err)
	before := s.state()
	ses := session(t, s.runtime(nil, whole))
	tx := begin(t, ses)
	_, err = tx.Invoke(ctx, "whole", line{"a", "x"})
	require.NoError(t, err)
	require.Len(t, s.orders(), 3)
	written, err := os.ReadFile(filepath.Join(s.dir, "a_0"))
	require.NoError(t, err)
	require.Contains(t, string(written), "x.put")
	require.NoError(t, tx.Commit(ctx))
	_, err = ses.Revert(ctx, tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, s.state())
}

// TestAStateInParts: two parts that hold the same state see what the other left, and a
// fallback forgets what the part before would have left.
func TestAStateInParts(t *testing.T) {
	ctx := context.Background()
	s := newShop(t)
	type count struct{ N int }
	next := func(name string) tool.Tool {
		c, err := tool.Stateful("count", "Count.", nil, func(context.Context, ctxperm.ToolContext) (count, error) { return count{}, nil },
			func(_ context.Context, _ ctxperm.ToolContext, in line, was count) (line, count, error) {
				was.N++
				in.Text += strings.Repeat("i", was.N)
				return in, was, nil
			}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
		require.NoError(t, err)
		return c
	}
	twice, err := compose.Chain(about, compose.Part{Tool: next("count")}, compose.Part{Tool: next("count")}, compose.Part{Tool: s.put("put")})
	require.NoError(t, err)
	in := about
	in.Name = "second"
	other, err := compose.Fallback(in, compose.Part{Tool: twice}, compose.Part{Tool: next("count")})
	require.NoError(t, err)
	before := s.state()
	ses := session(t, s.runtime(nil, twice, other, next("count")))
	tx := begin(t, ses)
	s.failing, s.mode = "put", "late"
	out, err := tx.Invoke(ctx, "second", line{"a", "x"})
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"a","text":"xi"}`, string(out.Output))
	require.Equal(t, before, s.state())
	s.failing = ""
	out, err = tx.Invoke(ctx, "second", line{"a", "x"})
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"a","text":"xiiiii.put"}`, string(out.Output))
	_, err = tx.Revert(ctx, revert.Options{Calls: []string{out.Call}})
	require.NoError(t, err)
	out, err = tx.Invoke(ctx, "count", line{"a", "x"})
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"a","text":"xii"}`, string(out.Output))
}

// TestAStateBesideAFallback: a part that goes wrong takes what it left of a state with it,
// also from under a part beside it that has made something of it by then.
func TestAStateBesideAFallback(t *testing.T) {
	ctx := context.Background()
	type texts struct{ All []string }
	for name, before := range map[string]bool{"it is done by then": false, "it is at work": true} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			counted, gone, started := make(chan struct{}), make(chan struct{}), make(chan struct{})
			kept := func(name string, first, then func()) tool.Tool {
				k, err := tool.Stateful("kept", "Keep.", nil, func(context.Context, ctxperm.ToolContext) (texts, error) { return texts{}, nil },
					func(_ context.Context, _ ctxperm.ToolContext, in line, was texts) (line, texts, error) {
						then()
						was.All = append(was.All, name)
						in.Text = strings.Join(was.All, " ")
						return in, was, nil
					}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
				require.NoError(t, err)
				waits, err := tool.CreateTyped("waits", "Waits.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
					first()
					return in, nil
				}, tool.Pure(), tool.Confined(tool.Handles))
				require.NoError(t, err)
				both, err := compose.Chain(compose.Declaration{Name: name, Description: "Both."}, compose.Part{Tool: waits}, compose.Part{Tool: k})
				require.NoError(t, err)
				return both
			}
			nothing := func() {}
			fails, err := tool.CreateTyped("fails", "Fails.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
				close(counted) // the state is left
				if before {
					<-started
				} else {
					<-gone
				}
				return in, errors.New("it went wrong")
			}, tool.Pure(), tool.Confined(tool.Handles))
			require.NoError(t, err)
			wrong, err := compose.Chain(compose.Declaration{Name: "wrong", Description: "Goes wrong."}, compose.Part{Tool: kept("wrong", nothing, nothing)}, compose.Part{Tool: fails})
			require.NoError(t, err)
			spare, err := tool.CreateTyped("spare", "Takes its place.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
				if before {
					close(gone)
				}
				return in, nil
			}, tool.Pure(), tool.Confined(tool.Handles))
			require.NoError(t, err)
			fallback, err := compose.Fallback(compose.Declaration{Name: "fallback", Description: "One of them."}, compose.Part{Tool: wrong}, compose.Part{Tool: spare})
			require.NoError(t, err)
			beside := kept("beside", func() { <-counted }, func() {
				if before {
					close(started)
					<-gone
				}
			})
			last, err := tool.CreateTyped("last", "Says that it is done.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
				if !before {
					close(gone)
				}
				return in, nil
			}, tool.Pure(), tool.Confined(tool.Handles))
			require.NoError(t, err)
			other, err := compose.Chain(compose.Declaration{Name: "other", Description: "Beside."}, compose.Part{Tool: beside}, compose.Part{Tool: last})
			require.NoError(t, err)
			whole, err := compose.Parallel(about, compose.Part{Tool: fallback}, compose.Part{Tool: other})
			require.NoError(t, err)

			single := kept("single", nothing, nothing)
			tx := begin(t, session(t, s.runtime(nil, whole, single)))
			out, err := tx.Invoke(ctx, "whole", line{"a", "x"})
			require.ErrorIs(t, err, tool.ErrFailed, "%+v", out)
			out, err = tx.Invoke(ctx, "single", line{"a", "x"})
			require.NoError(t, err)
			require.JSONEq(t, `{"path":"a","text":"single"}`, string(out.Output), "nothing of either is left")
		})
	}
}
