package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// asksInside is a policy that has a person approve what a running call asks for.
func asksInside(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Access.Dynamic {
		return perm.NewDecision(perm.Ask, perm.Details{Reasons: []perm.Reason{{Text: "a person looks at it", At: "p.rego:1", Set: "ask"}}, Revision: "r1"}), nil
	}
	return perm.NewDecision(perm.Allow, perm.Details{Revision: "r1"}), nil
}

// inner is a runtime whose policy asks about what running calls ask for.
type inner struct {
	dir string
	rt  *agent.Runtime
	s   *agent.Session
}

func newInner(t *testing.T, code func(ctx context.Context, tc ctxperm.ToolContext, f *files.Files) error, how []tool.Option, opts ...agent.Option) inner {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	needs := []perm.ResourceAccess{perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace/**"), perm.Access(perm.Delete, "file://workspace/**")}
	one, err := tool.CreateWith("one", "Does as the test says.", needs, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
		f, err := files.Open(tc, "workspace")
		if err != nil {
			return "", err
		}
		return "ran", code(ctx, tc, f)
	}, append([]tool.Option{tool.Effect(effect.Reversible), tool.Confined(tool.Handles)}, how...)...)
	require.NoError(t, err)
	rt, err := agent.New(append([]agent.Option{
		agent.Tools(one), agent.Root("workspace", dir), agent.Policy(perm.EngineFunc(asksInside)), agent.Log(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return inner{dir, rt, s}
}

func (w inner) begin(t *testing.T) *agent.Txn {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	return tx
}

func (w inner) call(t *testing.T, id string) *revert.Call {
	t.Helper()
	_, c, err := revert.LoadCall(t.Context(), w.rt.Journal(), id)
	require.NoError(t, err)
	return c
}

// has asserts which files are in the workspace.
func (w inner) has(t *testing.T, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(w.dir)
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.Equal(t, names, found)
}

// recordingApprover is an approver that notes what it is asked, and says yes.
type recordingApprover struct {
	mu   sync.Mutex
	asks []ctxperm.ApprovalRequest
	say  func(ctx context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error)
}

func (h *recordingApprover) Approve(ctx context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
	h.mu.Lock()
	h.asks = append(h.asks, a)
	h.mu.Unlock()
	if h.say != nil {
		return h.say(ctx, a)
	}
	return ctxperm.Approve("boss"), nil
}

func putNew(ctx context.Context, f *files.Files, name string) error {
	return f.Write(ctx, name, []byte("new "+name), files.WriteOptions{})
}

// TestAskedInside: an approver is asked about what a running call asks for, with that
// access; what it says is on record, before and after the first change of the call.
func TestAskedInside(t *testing.T) {
	boss := &recordingApprover{}
	w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
		return errors.Join(putNew(ctx, f, "d"), putNew(ctx, f, "e"))
	}, nil, agent.Approver(boss))
	tx := w.begin(t)
	o, err := tx.Invoke(t.Context(), "one", "")
	require.NoError(t, err, o.Text)
	w.has(t, "a", "b", "c", "d", "e")
	require.Len(t, boss.asks, 2)
	for i, name := range []string{"d", "e"} {
		require.Equal(t, []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/"+name)}, boss.asks[i].Accesses)
		require.True(t, boss.asks[i].Running)
		require.Equal(t, o.Call, boss.asks[i].Call)
	}
	c := w.call(t, o.Call)
	require.Nil(t, c.Started.Approval, "nobody was asked before the call")
	require.Len(t, c.Approvals, 2)
	for i, a := range c.Approvals {
		require.Equal(t, record.Approval{By: "boss", Digest: boss.asks[i].Digest}, a.Approval)
		require.Equal(t, []record.Access{{Action: "write", Resource: boss.asks[i].Accesses[0].Resource}}, a.Access)
	}
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	w.has(t, "a", "b", "c")
}

// TestAskedOnce: what an operation needs is asked about once, as a list, and one
// access is not asked about twice.
func TestAskedOnce(t *testing.T) {
	boss := &recordingApprover{}
	w := newInner(t, func(ctx context.Context, tc ctxperm.ToolContext, f *files.Files) error {
		for range 2 {
			p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Read, "file://workspace/a"), perm.Access(perm.Read, "file://workspace/b"), perm.Access(perm.Read, "file://workspace/a"))
			if err != nil {
				return err
			}
			p.End()
		}
		_, err := f.ReadFile(ctx, "b")
		return err
	}, nil, agent.Approver(boss))
	o, err := w.begin(t).Invoke(t.Context(), "one", "")
	require.NoError(t, err, o.Text)
	require.Len(t, boss.asks, 1)
	require.Equal(t, []perm.ResourceAccess{perm.Access(perm.Read, "file://workspace/a"), perm.Access(perm.Read, "file://workspace/b")}, boss.asks[0].Accesses)
}

// TestRefusedInside checks that the runtime does not perform an access without
// an approval. It reverts what the call did before.
func TestRefusedInside(t *testing.T) {
	for _, tt := range []struct {
		name string
		say  func(ctx context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error)
		why  string
	}{
		{"refused", func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			return ctxperm.Deny("boss", "not this one"), nil
		}, "refused by boss: not this one"},
		{"no answer", func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) { return ctxperm.Answer{}, nil }, "refused by the approver"},
		{"error", func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			return ctxperm.Answer{}, errors.New("no line")
		}, "the approver did not answer: no line"},
		{"panic", func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) { panic("boss") }, "the approver panicked (string)"},
		{"by the one who asks", func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			return ctxperm.Approve("coder"), nil
		}, "the one who asks cannot be the one who approves"},
		{"deaf", func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			time.Sleep(time.Hour)
			return ctxperm.Approve("boss"), nil
		}, "did not answer in time"},
		{"too late", func(ctx context.Context, _ ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			<-ctx.Done()
			return ctxperm.Approve("boss"), nil
		}, "did not answer in time"},
	} {
		t.Run(tt.name, inBubble(func(t *testing.T) {
			boss := &recordingApprover{}
			boss.say = func(ctx context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
				if len(boss.asks) == 1 {
					return ctxperm.Approve("boss"), nil
				}
				return tt.say(ctx, a)
			}
			w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
				if err := putNew(ctx, f, "d"); err != nil {
					return err
				}
				_ = putNew(ctx, f, "e") // the tool ignores the error
				return nil
			}, nil, agent.Approver(boss))
			o, err := w.begin(t).Invoke(t.Context(), "one", "")
			require.ErrorIs(t, err, tool.ErrDenied, o.Text)
			require.Equal(t, "approver", o.Stage)
			require.Contains(t, o.Error.Why, tt.why)
			require.Equal(t, "all", o.Reverted)
			w.has(t, "a", "b", "c")
			c := w.call(t, o.Call)
			require.Equal(t, "file://workspace/e", c.Failed.Access.Resource)
			require.Equal(t, []perm.Reason{{Text: "a person looks at it", At: "p.rego:1", Set: "ask"}}, o.Decision.Reasons)
			require.Contains(t, o.Text, "a person looks at it")
			require.Len(t, c.Approvals, 1)
			time.Sleep(2 * time.Hour) // for an approver that is deaf
		}))
	}
}

// TestNobodyToAsk: without an approver a call is denied that needs one, also if it would
// only have looked: a result without it would say less than it seems to.
func TestNobodyToAsk(t *testing.T) {
	w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
		_, _ = f.ReadFile(ctx, "a")
		return nil
	}, nil)
	o, err := w.begin(t).Invoke(t.Context(), "one", "")
	require.ErrorIs(t, err, tool.ErrDenied, o.Text)
	require.Equal(t, "approver", o.Stage)
	require.Contains(t, o.Error.Why, "there is no approver")
	require.Contains(t, o.Error.Fix, "agent.Approver")
	require.Contains(t, o.Error.Fix, "agent.SuspendForApproval")
}

// TestLooksElsewhere: a person who said no to a look leaves it to the tool what it does
// without.
func TestLooksElsewhere(t *testing.T) {
	boss := &recordingApprover{say: func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Deny("boss", "no"), nil
	}}
	w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
		_, err := f.ReadFile(ctx, "a")
		if !errors.Is(err, ctxperm.ErrDenied) {
			return errors.New("it was not refused")
		}
		return nil
	}, nil, agent.Approver(boss))
	o, err := w.begin(t).Invoke(t.Context(), "one", "")
	require.NoError(t, err, o.Text)
}

// inBubble runs a test by a clock of its own, which stands still while anything runs.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// TestTimeStandsStill: the time that a person takes is not that of the tool, which has
// all of its own afterwards, and no more.
func TestTimeStandsStill(t *testing.T) {
	for _, works := range []time.Duration{2 * time.Second, 4 * time.Second} {
		t.Run(works.String(), inBubble(func(t *testing.T) {
			boss := &recordingApprover{say: func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
				time.Sleep(4 * time.Second)
				return ctxperm.Approve("boss"), nil
			}}
			w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
				for _, name := range []string{"d", "e"} {
					work, stop := context.WithTimeout(ctx, works)
					<-work.Done()
					stop()
					if ctx.Err() != nil {
						return ctx.Err()
					}
					if err := putNew(ctx, f, name); err != nil {
						return err
					}
				}
				return nil
			}, []tool.Option{func(s *tool.Spec) { s.Hints.Timeout = 5 * time.Second }}, agent.Approver(boss))
			began := time.Now()
			o, err := w.begin(t).Invoke(t.Context(), "one", "")
			if works == 2*time.Second { // in all 4 of its own, and 8 of the person's
				require.NoError(t, err, o.Text)
				w.has(t, "a", "b", "c", "d", "e")
				return
			}
			require.ErrorIs(t, err, tool.ErrTimeout, o.Text)
			require.Equal(t, 9*time.Second, time.Since(began))
			w.has(t, "a", "b", "c")
		}))
	}
}

// TestCancelledWhileAsked: the call of a caller who gives up is cancelled, and not
// denied; nothing of it is left.
func TestCancelledWhileAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	boss := &recordingApprover{say: func(ctx context.Context, _ ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		cancel()
		<-ctx.Done()
		return ctxperm.Answer{}, ctx.Err()
	}}
	w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error { return putNew(ctx, f, "d") }, nil, agent.Approver(boss))
	o, err := w.begin(t).Invoke(ctx, "one", "")
	require.ErrorIs(t, err, tool.ErrCancelled, o.Text)
	w.has(t, "a", "b", "c")
}

// TestTwoAskAtOnce: of two goroutines of one tool one is asked for after the other, and
// an access that both want once.
func TestTwoAskAtOnce(t *testing.T) {
	at := make(chan struct{}, 1)
	boss := &recordingApprover{say: func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		select {
		case at <- struct{}{}:
		default:
			return ctxperm.Deny("boss", "two at once"), nil
		}
		defer func() { <-at }()
		return ctxperm.Approve("boss"), nil
	}}
	w := newInner(t, func(ctx context.Context, _ ctxperm.ToolContext, f *files.Files) error {
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { _, errs[i] = f.ReadFile(ctx, []string{"a", "b"}[i%2]) })
		}
		all.Wait()
		return errors.Join(errs...)
	}, nil, agent.Approver(boss))
	o, err := w.begin(t).Invoke(t.Context(), "one", "")
	require.NoError(t, err, o.Text)
	require.Len(t, boss.asks, 2)
	require.Len(t, w.call(t, o.Call).Approvals, 2)
}

// TestRememberedInside: what was approved of calls to come counts for what they ask for
// while they run, and for nothing else.
func TestRememberedInside(t *testing.T) {
	boss := &recordingApprover{say: func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.ApproveAndRemember("boss", ctxperm.RememberScope{}), nil
	}}
	names := []string{"a", "b"}
	w := newInner(t, func(ctx context.Context, tc ctxperm.ToolContext, _ *files.Files) error {
		var all []perm.ResourceAccess
		for _, name := range names {
			all = append(all, perm.Access(perm.Read, "file://workspace/"+name))
		}
		p, err := ctxperm.Authorize(ctx, tc, all...)
		p.End()
		return err
	}, nil, agent.Approver(boss))
	for _, more := range []string{"", "c"} {
		if more != "" {
			names = append(names, more)
		}
		for range 2 {
			o, err := w.begin(t).Invoke(t.Context(), "one", "")
			require.NoError(t, err, o.Text)
			require.NotEmpty(t, w.call(t, o.Call).Approvals)
		}
	}
	require.Len(t, boss.asks, 2)
	require.Equal(t, []perm.ResourceAccess{perm.Access(perm.Read, "file://workspace/c")}, boss.asks[1].Accesses, "the others were remembered")
}
