package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// office is a journal that several runtimes open, one after another or at once.
type office struct {
	t          *testing.T
	dir, state string
	host       *hosttest.Host
	tools      []tool.Tool
	engine     perm.Engine
}

func newOffice(t *testing.T, tools ...tool.Tool) *office {
	return &office{
		t: t, dir: workspace(t), state: filepath.Join(t.TempDir(), "state"), host: hosttest.New(1),
		tools: append(builtin.Files(), tools...), engine: allowAll(),
	}
}

func (o *office) open() (*agent.Runtime, func()) {
	j, err := sqlite.Open(context.Background(), o.state)
	require.NoError(o.t, err)
	rt, err := agent.New(quiet(), agent.Host(o.host), agent.Tools(o.tools...), agent.Policy(o.engine), agent.Journal(j), agent.Root("workspace", o.dir), agent.SuspendForApproval())
	require.NoError(o.t, err)
	var once sync.Once
	end := func() {
		once.Do(func() {
			require.NoError(o.t, rt.Close())
			require.NoError(o.t, j.Close())
		})
	}
	o.t.Cleanup(end)
	return rt, end
}

func hand(t *testing.T, s *agent.Session, opts ...agent.SessionOption) *agent.Session {
	child, err := s.Delegate(context.Background(), perm.Principal{ID: "helper"}, opts...)
	require.NoError(t, err)
	return child
}

func reads(ctx context.Context, tx *agent.Txn) error {
	_, err := tx.Invoke(ctx, "file_read", tool.Args{"path": "a.txt"})
	return err
}

// TestGrantsEnd: expired, used up and revoked, here and above, each refuses at
// once, in the process that did it, in another one and after a restart.
func TestGrantsEnd(t *testing.T) {
	ctx := context.Background()
	for name, test := range map[string]struct {
		opts func(o *office) []agent.SessionOption
		end  func(o *office, other *agent.Runtime, parent, child *agent.Session, tx *agent.Txn)
		says string
	}{
		"expired": {
			func(o *office) []agent.SessionOption {
				return []agent.SessionOption{agent.Expires(o.host.Now().Add(time.Hour))}
			},
			func(o *office, _ *agent.Runtime, _, _ *agent.Session, _ *agent.Txn) { o.host.Advance(time.Hour) },
			"expired at",
		},
		"used up": {
			func(*office) []agent.SessionOption { return []agent.SessionOption{agent.MaxUses(2)} },
			func(o *office, _ *agent.Runtime, _, _ *agent.Session, tx *agent.Txn) {
				_, err := tx.Invoke(ctx, "file_read", tool.Args{"path": "../a.txt"})
				require.ErrorIs(o.t, err, tool.ErrInvalid, "what did not start is no use")
				require.NoError(o.t, reads(ctx, tx))
			},
			"is used up: it was for 2 calls",
		},
		"revoked": {
			nil,
			func(o *office, rt *agent.Runtime, _, child *agent.Session, _ *agent.Txn) {
				require.NoError(o.t, rt.Revoke(ctx, child.ID(), "boss", "enough"))
			},
			"was revoked by boss: enough",
		},
		"revoked above": {
			nil,
			func(o *office, rt *agent.Runtime, parent, _ *agent.Session, _ *agent.Txn) {
				require.NoError(o.t, rt.Revoke(ctx, parent.ID(), "boss", ""))
			},
			"was revoked by boss",
		},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, elsewhere), func(t *testing.T) {
				o := newOffice(t)
				rt, end := o.open()
				var opts []agent.SessionOption
				if test.opts != nil {
					opts = test.opts(o)
				}
				root := newSession(t, rt)
				parent := hand(t, root)
				child := hand(t, parent, opts...)
				tx := begin(t, child)
				require.NoError(t, reads(ctx, tx))
				other := rt
				if elsewhere {
					other, _ = o.open()
				}
				test.end(o, other, parent, child, tx)
				err := reads(ctx, tx)
				require.ErrorIs(t, err, tool.ErrDenied)
				require.ErrorContains(t, err, test.says)
				_, err = child.Delegate(ctx, perm.Principal{ID: "third"})
				if name != "used up" {
					require.ErrorIs(t, err, ctxperm.ErrDenied)
				}
				require.NoError(t, reads(ctx, begin(t, root)), "the one above goes on")
				token := child.Token()
				end()

				rt, _ = o.open()
				again, err := rt.ResumeSession(ctx, token)
				require.NoError(t, err)
				tx, err = again.Begin(ctx)
				if err == nil {
					err = reads(ctx, tx)
				}
				require.ErrorIs(t, err, tool.ErrDenied)
				require.ErrorContains(t, err, test.says)
			})
		}
	}
}

// TestRevokedInsideACall: a call that runs does nothing more through handles, and
// what it did is reverted.
func TestRevokedInsideACall(t *testing.T) {
	ctx := context.Background()
	var rt *agent.Runtime
	var s *agent.Session
	for name, next := range map[string]func(tc ctxperm.ToolContext, fs *handle.Files) error{
		"another write": func(_ ctxperm.ToolContext, fs *handle.Files) error {
			return fs.Write(ctx, "b.txt", []byte("2"), handle.WriteOptions{})
		},
		"the same file": func(_ ctxperm.ToolContext, fs *handle.Files) error {
			return fs.Write(ctx, "a.txt", []byte("3"), handle.WriteOptions{})
		},
		"a permit that was open": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var seen error
			tl, err := tool.CreateWith("put", "", anyWrite(), func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
				fs, err := handle.Open(tc, "workspace")
				if err != nil {
					return "", err
				}
				if err := fs.Write(ctx, "a.txt", []byte("1"), handle.WriteOptions{}); err != nil {
					return "", err
				}
				const b = "file://workspace/b.txt"
				p, err := ctxperm.Authorize(ctx, tc, perm.Access(perm.Write, b))
				if err != nil {
					return "", err
				}
				defer p.End()
				if err := rt.Revoke(ctx, s.ID(), "boss", "stop"); err != nil {
					return "", err
				}
				if next != nil {
					seen = next(tc, fs)
				} else {
					_, seen = p.RecordChange(ctx, []effect.Change{{Scheme: "x", Resource: b, Kind: "write", Pre: "a", Post: "b"}})
				}
				return "all is well", nil
			}, confined()...)
			o := newOffice(t, mustTool(t, tl, err))
			before := tree(t, o.dir)
			rt, _ = o.open()
			s = hand(t, newSession(t, rt))
			out, err := begin(t, s).Invoke(ctx, "put", "x")
			require.ErrorIs(t, seen, ctxperm.ErrDenied)
			require.ErrorIs(t, err, tool.ErrDenied)
			require.ErrorContains(t, err, "revoked by boss: stop")
			require.Equal(t, "all", out.Reverted)
			require.Equal(t, before, tree(t, o.dir))
		})
	}
}

// TestHandingOnNeverWidens delegates random grants repeatedly. No session holds
// more than the session that delegated to it, also after a restart.
func TestHandingOnNeverWidens(t *testing.T) {
	ctx := context.Background()
	resources := []string{"a.txt", "b.txt", "src/a.txt", "src/x/b.txt", ".git/config", "docs/c.md"}
	patterns := []string{"**", "*", "src/**", "*/a.txt", "a.txt", ".git/**", "docs/*"}
	actions := []perm.Action{perm.Read, perm.Write, perm.Delete, perm.List}
	allowed := func(s *agent.Session) (out []perm.ResourceAccess) {
		for _, r := range resources {
			for _, a := range actions {
				if access := perm.Access(a, "file://workspace/"+r); s.Allows(access) {
					out = append(out, access)
				}
			}
		}
		return out
	}
	fewer := 0
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		random := func(n int) (out []perm.ResourceAccess) {
			for range n {
				out = append(out, perm.Access(actions[r.IntN(len(actions))], "file://workspace/"+patterns[r.IntN(len(patterns))]))
			}
			return out
		}
		o := newOffice(t)
		rt, end := o.open()
		holders := []*agent.Session{newSession(t, rt)}
		var tokens []string
		var holds [][]perm.ResourceAccess
		for range 12 {
			from := holders[r.IntN(len(holders))]
			var opts []agent.SessionOption
			if r.IntN(3) > 0 {
				opts = append(opts, agent.Grant(random(1+r.IntN(6))...))
			}
			if r.IntN(2) == 0 {
				opts = append(opts, agent.Except(random(1+r.IntN(2))...))
			}
			child := hand(t, from, opts...)
			require.Subset(t, allowed(from), allowed(child))
			if len(allowed(child)) < len(allowed(from)) {
				fewer++
			}
			require.Equal(t, append(from.Principal().Chain, from.Principal().ID), child.Principal().Chain)
			holders, tokens, holds = append(holders, child), append(tokens, child.Token()), append(holds, allowed(child))
		}
		end()
		rt, end = o.open()
		for i, token := range tokens {
			s, err := rt.ResumeSession(ctx, token)
			require.NoError(t, err)
			require.Equal(t, holds[i], allowed(s))
			require.Equal(t, holders[i+1].Principal(), s.Principal())
		}
		end()
	}
	require.NotZero(t, fewer)
}

// TestUsesAreNotSpentTwice checks that a grant for three calls starts exactly
// three calls. The calls come in parallel from the session and its delegates.
func TestUsesAreNotSpentTwice(t *testing.T) {
	o := newOffice(t)
	rt, _ := o.open()
	parent := hand(t, newSession(t, rt), agent.MaxUses(3))
	txns := []*agent.Txn{begin(t, parent), begin(t, hand(t, parent)), begin(t, hand(t, parent, agent.MaxUses(2)))}
	var mu sync.Mutex
	var all sync.WaitGroup
	done := 0
	for i := range 30 {
		all.Go(func() {
			if reads(context.Background(), txns[i%3]) == nil {
				mu.Lock()
				defer mu.Unlock()
				done++
			}
		})
	}
	all.Wait()
	require.Equal(t, 3, done)
}

func TestGrantsThatAreNone(t *testing.T) {
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Policy(allowAll()), agent.Root("workspace", workspace(t)))
	s := newSession(t, rt)
	for says, opt := range map[string]agent.SessionOption{
		"a grant for 0 calls is none": agent.MaxUses(0),
		"Expires: the time is zero":   agent.Expires(time.Time{}),
		"must not be negative":        agent.ClaimTimeout(-1),
		"unknown action":              agent.Except(perm.Access("own", "file://workspace/**")),
	} {
		_, err := s.Delegate(t.Context(), perm.Principal{ID: "x"}, opt)
		require.ErrorContains(t, err, says)
		_, err = rt.Session(t.Context(), perm.Principal{ID: "x"}, opt)
		require.ErrorContains(t, err, says)
	}
	_, err := s.Delegate(t.Context(), perm.Principal{})
	require.ErrorContains(t, err, "a principal with an id")
	_, err = s.Delegate(t.Context(), perm.Principal{ID: "x", Chain: []string{"boss"}})
	require.ErrorContains(t, err, "the chain of a principal is made of")
	require.ErrorIs(t, rt.Revoke(t.Context(), "s_nobody", "boss", ""), journal.ErrNotFound)
	require.ErrorIs(t, rt.Revoke(t.Context(), s.ID(), "", ""), tool.ErrInvalid)
}
