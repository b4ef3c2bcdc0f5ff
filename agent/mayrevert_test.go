package agent_test

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
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// aboutReverts allows everything, and says of reverts of a.txt what effect says.
func aboutReverts(effect perm.Effect, failure error) perm.Engine {
	return perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose != perm.PurposeRevert || r.Access.Resource.Path != "a.txt" {
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		}
		return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Set: "ask", Text: "a.txt is kept"}}}), failure
	})
}

// TestMayRevert: what an agent asks to revert, the policy decides, call by call; what a host program or a person reverts, it does not.
func TestMayRevert(t *testing.T) {
	for _, tt := range []struct {
		name    string
		effect  perm.Effect
		failure error
		answer  *ctxperm.Answer // nil: no approver
		back    bool
		why     string
	}{
		{name: "allowed", effect: perm.Allow, back: true},
		{name: "denied", effect: perm.Deny, why: "the policy does not let coder take call CALL back: a.txt is kept; a person can revert it: remit revert CALL"},
		{name: "nobody to ask", effect: perm.Ask, why: "a person decides whether call CALL is reverted, and a revert waits for no answer: this takes call CALL back; a.txt is kept; a person can revert it: remit revert CALL"},
		{name: "approved", effect: perm.Ask, answer: to(ctxperm.Approve("boss")), back: true},
		{name: "refused", effect: perm.Ask, answer: to(ctxperm.Deny("boss", "not now")), why: "refused by boss: not now"},
		{name: "by itself", effect: perm.Ask, answer: to(ctxperm.Approve("coder")), why: "the one who asks cannot be the one who approves"},
		{name: "no answer of the policy", effect: perm.Allow, failure: errors.New("broken"), why: "could not be asked whether coder may take call CALL back: broken"},
	} {
		for _, open := range []bool{true, false} {
			t.Run(tt.name+map[bool]string{true: ", open", false: ", committed"}[open], func(t *testing.T) {
				ctx, dir := t.Context(), workspace(t)
				before, asked := tree(t, dir), []ctxperm.ApprovalRequest{}
				opts := []agent.Option{agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(aboutReverts(tt.effect, tt.failure))}
				if tt.answer != nil {
					opts = append(opts, agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
						asked = append(asked, a)
						return *tt.answer, nil
					})))
				}
				rt := newRuntime(t, opts...)
				s := newSession(t, rt)
				tx := begin(t, s)
				call := invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "tighter"}).Call
				invoke(t, tx, "file_write", tool.Args{"path": "b.txt", "content": "other"})
				if !open {
					require.NoError(t, tx.Commit(ctx))
				}
				how := revert.Options{Permit: s.MayRevert}

				rep, err := s.Preview(ctx, tx.ID(), how)
				require.NoError(t, err)
				require.Empty(t, asked, "a preview asks nobody")
				requireBack(t, rep, tt.back || tt.answer != nil, "")

				rep, err = s.Revert(ctx, tx.ID(), how)
				why := strings.ReplaceAll(tt.why, "CALL", call)
				requireBack(t, rep, tt.back, why)
				if tt.answer != nil {
					require.Len(t, asked, 1)
					require.Equal(t, call, asked[0].Call)
					require.Equal(t, []string{"this takes call " + call + " back", "a.txt is kept"}, []string{asked[0].Reasons[0].Text, asked[0].Reasons[1].Text})
				}
				if tt.back {
					require.NoError(t, err)
					require.Equal(t, before, tree(t, dir))
					return
				}
				require.ErrorIs(t, err, agent.ErrPartialRevert)
				left, err := os.ReadFile(filepath.Join(dir, "a.txt"))
				require.NoError(t, err)
				require.Equal(t, "tighter", string(left))

				rep, err = rt.Revert(ctx, tx.ID(), revert.Options{}) // a person
				require.NoError(t, err)
				require.True(t, rep.Complete())
				require.Equal(t, before, tree(t, dir))
			})
		}
	}
}

func to(a ctxperm.Answer) *ctxperm.Answer { return &a }

// requireBack holds that b.txt is reverted, and a.txt if back says so.
func requireBack(t *testing.T, rep revert.Report, back bool, why string) {
	require.Len(t, rep.Items, 2)
	for _, item := range rep.Items {
		if item.Resource == "file://workspace/b.txt" || back {
			require.Equal(t, effect.Restored, item.Outcome, item.Why)
			continue
		}
		require.Equal(t, effect.Failed, item.Outcome)
		require.Contains(t, item.Why, why)
	}
}

// TestMayRevertBelow: what lies under a call that stays stays, too, and says why.
func TestMayRevertBelow(t *testing.T) {
	ctx, dir := t.Context(), workspace(t)
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeRevert && strings.Contains(string(r.Call.Args), "second") {
			return perm.NewDecision(perm.Deny, perm.Details{}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})))
	s := newSession(t, rt)
	tx := begin(t, s)
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "first"})
	second := invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "second"}).Call
	require.NoError(t, tx.Commit(ctx))
	rep, err := s.Revert(ctx, tx.ID(), revert.Options{Permit: s.MayRevert})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rep.Items, 2)
	require.Equal(t, second, rep.Items[0].Call)
	require.Equal(t, effect.Conflict, rep.Items[1].Outcome)
	require.Contains(t, rep.Items[1].Why, "a later call, "+second+", changed it and must not be reverted")

	other := newSession(t, rt)
	require.ErrorContains(t, other.MayRevert(ctx, revert.Call{Session: s.ID()}, true), "is of another session")
	require.NoError(t, other.MayRevert(ctx, revert.Call{Session: other.ID()}, true), "it changed nothing")
}

// TestMayRevertOf: the policy is asked about each change of a file, and about what else the call was allowed where its own Revert reverts it.
func TestMayRevertOf(t *testing.T) {
	ctx, dir, n := t.Context(), workspace(t), 0
	var about []string
	mixed, err := tool.CreateWith("mixed", "", anyWrite(), puts("a.txt", returns("ok", nil)), tool.Effect(effect.Reversible), tool.Confined(tool.Trusted), reservedCall(&n))
	e := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if r.Purpose == perm.PurposeRevert {
			about = append(about, string(r.Access.Action)+" "+r.Access.Resource.Text+" by "+r.Tool.Name+" "+r.Call.EffectClass+" "+r.Tool.Confinement)
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt := newRuntime(t, agent.Tools(append(builtin.Files(), mustTool(t, mixed, err))...), agent.Root("workspace", dir), agent.Policy(e))
	s := newSession(t, rt)
	for _, tt := range []struct {
		name  string
		input any
		want  []string
	}{
		{"mixed", "x", []string{"write file://workspace/a.txt by mixed reversible trusted", "call tool://mixed by mixed reversible trusted"}},
		{"file_delete", tool.Args{"path": "sub", "recursive": true}, []string{"delete file://workspace/sub/c.txt by file_delete reversible handles", "delete file://workspace/sub by file_delete reversible handles"}},
		{"file_read", tool.Args{"path": "b.txt"}, nil},
	} {
		about = nil
		tx := begin(t, s)
		_, err := tx.Invoke(ctx, tt.name, tt.input)
		require.NoError(t, err)
		require.NoError(t, tx.Commit(ctx))
		_, err = s.Revert(ctx, tx.ID(), revert.Options{Permit: s.MayRevert})
		require.NoError(t, err)
		require.Equal(t, tt.want, about, tt.name)
	}
	require.Equal(t, 1, n)
}

// TestMayRevertNothing checks that a refused revert asks the approver once. The
// journal then holds no revert transaction.
func TestMayRevertNothing(t *testing.T) {
	ctx, dir, asked := t.Context(), workspace(t), 0
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(aboutReverts(perm.Ask, nil)),
		agent.Approver(ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
			asked++
			return ctxperm.Deny("boss", ""), nil
		})))
	s := newSession(t, rt)
	tx := begin(t, s)
	invoke(t, tx, "file_write", tool.Args{"path": "a.txt", "content": "tighter"})
	require.NoError(t, tx.Commit(ctx))
	rep, err := s.Revert(ctx, tx.ID(), revert.Options{Permit: s.MayRevert})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rep.Items, 1)
	require.Equal(t, effect.Failed, rep.Items[0].Outcome)
	require.Empty(t, rep.RevertTxn)
	require.Equal(t, revert.TxnCommitted, rep.State)
	require.Equal(t, 1, asked)
	invoke(t, begin(t, s), "file_write", tool.Args{"path": "a.txt", "content": "again"}) // nothing holds it
}

// TestMayMerge checks that the policy decides whether a revert by an agent keeps
// what another process changed. A person's revert does not ask it.
func TestMayMerge(t *testing.T) {
	for _, tt := range []struct {
		effect perm.Effect
		merges bool
	}{{perm.Allow, true}, {perm.Deny, false}, {perm.Ask, false}} {
		t.Run(string(tt.effect), func(t *testing.T) {
			ctx, dir := t.Context(), workspace(t)
			name := filepath.Join(dir, "lines.txt")
			require.NoError(t, os.WriteFile(name, []byte("one\ntwo\nthree\n"), 0o644))
			policy := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
				if r.Purpose != perm.PurposeMerge {
					return perm.NewDecision(perm.Allow, perm.Details{}), nil
				}
				require.Equal(t, "lines.txt", r.Access.Resource.Path)
				require.Equal(t, perm.Write, r.Access.Action)
				return perm.NewDecision(tt.effect, perm.Details{Reasons: []perm.Reason{{Set: "deny", Text: "no merges"}}}), nil
			})
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(policy))
			s := newSession(t, rt)
			tx := begin(t, s)
			invoke(t, tx, "file_edit", tool.Args{"path": "lines.txt", "old": "one", "new": "ONE"})
			require.NoError(t, tx.Commit(ctx))
			require.NoError(t, os.WriteFile(name, []byte("ONE\ntwo\nmine\n"), 0o644))

			how := revert.Options{Permit: s.MayRevert, PermitMerge: s.MayMerge}
			rep, err := s.Revert(ctx, tx.ID(), how)
			want := "one\ntwo\nmine\n"
			if !tt.merges {
				require.ErrorIs(t, err, agent.ErrPartialRevert)
				require.Contains(t, rep.Items[0].Why, "does not let coder merge it: no merges")
				now, err := os.ReadFile(name)
				require.NoError(t, err)
				require.Equal(t, "ONE\ntwo\nmine\n", string(now))
				rep, err = rt.Revert(ctx, tx.ID(), revert.Options{})
				require.NoError(t, err)
				require.Equal(t, effect.Merged, rep.Items[0].Outcome)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, effect.Merged, rep.Items[0].Outcome)
			now, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, want, string(now))
			require.Error(t, s.MayMerge(ctx, revert.Call{Session: "s_other"}, "file://workspace/lines.txt"))
		})
	}
}
