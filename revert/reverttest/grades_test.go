package reverttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// textStore is a store of texts that tools change.
type textStore struct {
	wire *reverttest.Wire

	mu   sync.Mutex // never held across a wait
	now  map[string]string
	keys map[string]bool // requests that it has handled
	log  map[string]string
}

func (s *textStore) get(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[name]
}

func (s *textStore) set(name, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now[name] = to; to == "" {
		delete(s.now, name)
	}
}

// put changes a text, as an action of the process itself.
func (s *textStore) put(ctx context.Context, name, to string) error {
	return s.wire.Do(ctx, "put "+name, func() { s.set(name, to) })
}

// ask requests a change of a text, once for each key.
func (s *textStore) ask(ctx context.Context, key, name, to string) error {
	return s.wire.Send(ctx, "put "+name, func() {
		s.mu.Lock()
		known := s.keys[key]
		s.keys[key] = true
		s.mu.Unlock()
		if !known {
			s.set(name, to)
			s.mu.Lock()
			s.log[key] = name
			s.mu.Unlock()
		}
	})
}

func (s *textStore) shown() (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.now), nil
}

func (s *textStore) traces() (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.log), nil
}

type textStoreKey struct{}

func textStoreOf(ctx context.Context) *textStore {
	s, _ := ctx.Value(textStoreKey{}).(*textStore)
	return s
}

func textStores(traced, foreign bool) func(*reverttest.Wire) (reverttest.TestEnv, error) {
	return func(w *reverttest.Wire) (reverttest.TestEnv, error) {
		s := &textStore{wire: w, now: map[string]string{"a": "old a", "b": "old b"}, keys: map[string]bool{}, log: map[string]string{}}
		world := reverttest.TestEnv{
			Snapshot: s.shown,
			Context:  func(ctx context.Context) context.Context { return context.WithValue(ctx, textStoreKey{}, s) },
		}
		if foreign {
			world.Foreign = map[string]func() error{"rewrites a": func() error { s.set("a", "theirs"); return nil }}
		}
		if traced {
			world.Traces = s.traces
		}
		return world, nil
	}
}

// both is Execute of an honest tool: it notes the earlier texts, and changes
// two.
func both(ctx context.Context, tc ctxperm.ToolContext, to string) (string, error) {
	s := textStoreOf(ctx)
	for _, name := range []string{"a", "b"} {
		if err := tc.Note(ctx, name, s.get(name)); err != nil {
			return "", tool.NoEffect(err)
		}
	}
	return "put", errors.Join(s.put(ctx, "a", to), s.put(ctx, "b", to))
}

// back restores each text that is as the call left it.
func back(names ...string) tool.Revert {
	return func(ctx context.Context, rc tool.RevertContext) error {
		s, to := textStoreOf(ctx), input(rc.Input)
		var wrong error
		for _, name := range names {
			var was string
			if err := json.Unmarshal(rc.Notes[name], &was); err != nil {
				continue // the call had not changed it
			}
			switch s.get(name) {
			case was:
			case to:
				wrong = errors.Join(wrong, s.put(ctx, name, was))
			default:
				wrong = errors.Join(wrong, fmt.Errorf("%s was changed by somebody else", name))
			}
		}
		return wrong
	}
}

func input(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// sees checks whether the texts are present.
func sees(ctx context.Context, s verify.Subject) verify.Verdict {
	to, shelf := input(s.Input), textStoreOf(ctx)
	a, b := shelf.get("a") == to, shelf.get("b") == to
	switch {
	case a && b:
		return verify.Applied()
	case a || b:
		return verify.Partial("one of the two")
	default:
		return verify.Absent()
	}
}

func made(t *testing.T, name string, run func(context.Context, ctxperm.ToolContext, string) (string, error), class effect.Class, opts ...tool.Option) tool.Tool {
	made, err := tool.CreateWith(name, "Puts texts on a shelf.", nil, run, append(opts, tool.Effect(class))...)
	require.NoError(t, err)
	return made
}

// blind reports the expected result without checking.
func blind(_ context.Context, s verify.Subject) verify.Verdict {
	if s.Phase == verify.AfterRevert {
		return verify.Absent()
	}
	return verify.Applied("the call says so")
}

// TestGrades compares the grade of each tool with its claims.
func TestGrades(t *testing.T) {
	looked := tool.VerifyWith(sees)
	one := func(ctx context.Context, _ ctxperm.ToolContext, to string) (string, error) {
		s := textStoreOf(ctx)
		return "put", s.put(ctx, "a", s.get("a")+to)
	}
	asks := func(ctx context.Context, tc ctxperm.ToolContext, to string) (string, error) {
		return "asked", textStoreOf(ctx).ask(ctx, tc.Call().Key, "c", to)
	}
	asked := func(ctx context.Context, s verify.Subject) verify.Verdict {
		if textStoreOf(ctx).get("c") == input(s.Input) {
			return verify.Applied()
		}
		return verify.Absent()
	}
	patient := func(ctx context.Context, s verify.Subject) verify.Verdict {
		if v := asked(ctx, s); v.Presence() == effect.PresenceApplied || s.Phase != verify.Recovery {
			return v
		}
		return verify.CannotTell("it may still be on its way")
	}
	takes := func(ctx context.Context, rc tool.RevertContext) error {
		if s := textStoreOf(ctx); s.get("c") == input(rc.Input) {
			return s.ask(ctx, rc.RevertKey, "c", "")
		}
		return nil
	}
	runs := 0
	for name, tt := range map[string]struct {
		tool tool.Tool
		want provenance.Grade
		why  string
	}{
		"honest": {made(t, "both", both, effect.Reversible, looked, tool.RevertWith("1", back("a", "b"))), provenance.CrashUndoable, ""},
		"its Revert forgets something": {
			made(t, "forgets", both, effect.Reversible, tool.RevertWith("1", back("a"))), provenance.NotUndoable,
			"everything is said to be reverted, and b was old b and is new",
		},
		"its Verify looks at its own words": {
			made(t, "blind", both, effect.Reversible, tool.VerifyWith(blind), tool.RevertWith("1", back("a", "b"))), provenance.NotUndoable,
			"the call is recorded as done, and is not there",
		},
		"its Verify sees no undo": {
			made(t, "stubborn", both, effect.Reversible, tool.VerifyWith(func(context.Context, verify.Subject) verify.Verdict { return verify.Applied() }), tool.RevertWith("1", back("a", "b"))),
			provenance.NotUndoable, "",
		},
		"its Revert is not idempotent": {
			made(t, "twice", one, effect.Compensable, tool.RevertWith("1", func(ctx context.Context, rc tool.RevertContext) error {
				s := textStoreOf(ctx)
				now := s.get("a")
				return s.put(ctx, "a", now[:max(len(now)-len(input(rc.Input)), 0)])
			})), provenance.NotUndoable, "everything is said to be reverted, and a was old a and is ol",
		},
		"its Revert destroys foreign bytes": {
			made(t, "tramples", both, effect.Reversible, looked, tool.RevertWith("1", func(ctx context.Context, _ tool.RevertContext) error {
				s := textStoreOf(ctx)
				return errors.Join(s.put(ctx, "a", "old a"), s.put(ctx, "b", "old b"))
			})), provenance.NotUndoable, "a was left by somebody else as theirs, and is old a",
		},
		"its Revert does not mind what failed": {
			made(t, "careless", asks, effect.Compensable, tool.RevertWith("1", func(ctx context.Context, rc tool.RevertContext) error {
				_ = takes(ctx, rc)
				return nil
			})), provenance.NotUndoable, "everything is said to be reverted, and c was absent",
		},
		"it says pure": {made(t, "sly", both, effect.Pure), provenance.NotUndoable, "a was old a and is new"},
		"it is pure": {
			made(t, "idle", func(context.Context, ctxperm.ToolContext, string) (string, error) { return "", nil }, effect.Pure), provenance.ReadOnly, "",
		},
		"it has no way back": {made(t, "pivot", both, effect.Pivot), provenance.NotUndoable, "declared as pivot"},
		"it declares nothing": {
			made(t, "nothing", both, ""), provenance.NotUndoable, "declared as pivot",
		},
		"what it asks for may come late": {
			made(t, "hasty", asks, effect.Compensable, tool.VerifyWith(asked), tool.RevertWith("1", takes)), provenance.NotUndoable, "once what was late has arrived",
		},
		"it knows that what it asks for may come late": {
			made(t, "patient", asks, effect.Compensable, tool.VerifyWith(patient), tool.RevertWith("1", takes)), provenance.Compensable, "left to a person",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := reverttest.Config{NewEnv: textStores(strings.Contains(name, "late"), !strings.Contains(name, "idempotent")), Inputs: []any{"new"}, Seed: 1, Runs: 300}
			r, err := reverttest.Grade(tt.tool, c)
			require.NoError(t, err)
			require.Equal(t, tt.want, r.Grade, "%v", r.Against)
			if tt.why != "" {
				require.NotNil(t, r.Against)
				require.Contains(t, r.Against.What, tt.why, "%v", r.Against)
			}
			t.Log(r.Runs, r.Against)
			runs += r.Runs
		})
	}
	t.Logf("proved: fault kit, tools that claim too much or just enough: %d runs with faults, %d violations", runs, map[bool]int{true: 1}[t.Failed()])
}

// TestMemory checks that the memory of a tool ends with its process.
func TestMemory(t *testing.T) {
	forgetful := func() (tool.Tool, error) {
		var mu sync.Mutex // never held across a wait
		was := ""
		return tool.CreateWith("keeps", "Puts a text.", nil, func(ctx context.Context, _ ctxperm.ToolContext, to string) (string, error) {
			s := textStoreOf(ctx)
			mu.Lock()
			was = s.get("a")
			mu.Unlock()
			return "put", s.put(ctx, "a", to)
		}, tool.Effect(effect.Reversible), tool.RevertWith("1", func(ctx context.Context, rc tool.RevertContext) error {
			mu.Lock()
			defer mu.Unlock()
			if s := textStoreOf(ctx); was != "" && s.get("a") == input(rc.Input) {
				return s.put(ctx, "a", was)
			}
			return nil
		}))
	}
	one, err := forgetful()
	require.NoError(t, err)
	world := textStores(false, true)
	r, err := reverttest.Grade(one, reverttest.Config{Inputs: []any{"new"}, NewEnv: func(w *reverttest.Wire) (reverttest.TestEnv, error) {
		made, err := world(w)
		made.Tool = forgetful
		made.Process = func() ([]agent.Option, error) { return nil, nil }
		return made, err
	}})
	require.NoError(t, err)
	require.Equal(t, provenance.NotUndoable, r.Grade)
	require.Contains(t, r.Against.What, "a was old a and is new")
}
