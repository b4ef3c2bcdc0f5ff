package ctxperm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

const file = "file://workspace/a.txt"

// transaction is an open transaction with calls that share its locks.
type transaction struct {
	rec   revert.Recorder
	locks *callstate.ResourceLocks
	gate  callstate.AuthorizeFunc
}

func begin(t *testing.T, h *hosttest.Host) *transaction {
	j := journal.Memory()
	rec := revert.NewRecorder(j, h, "s_1").In("t_1")
	own := journal.Ownership{Txn: "t_1", Owner: j.Owner()}
	require.NoError(t, rec.Write(t.Context(), revert.Write{Records: []revert.CallRecord{{Body: &record.Begun{Owner: own.Owner}}}, Take: journal.OwnerChange{To: own}}))
	return &transaction{rec: rec, locks: callstate.NewResourceLocks(h), gate: func(context.Context, perm.ResourceAccess) (callstate.Ruling, error) { return callstate.Ruling{}, nil }}
}

func (x *transaction) call(id string) *callstate.Call {
	return callstate.New(callstate.Config{
		ID: id, Key: "k", Tool: "test", Recorder: x.rec, Locks: x.locks, Gate: x.gate,
		Started: &record.Started{Key: "k", Tool: record.ToolRef{Name: "test"}, Input: []byte("{}"), Decision: []byte("{}"), Confinement: "handles"},
	})
}

func permit(t *testing.T, c *callstate.Call, actions ...perm.Action) ctxperm.Permit {
	var all []perm.ResourceAccess
	for _, a := range actions {
		all = append(all, perm.Access(a, file))
	}
	p, err := ctxperm.Authorize(t.Context(), contexts.New(c), all...)
	require.NoError(t, err)
	return p
}

func changeOf(resource string) []effect.Change {
	return []effect.Change{{Scheme: "x", Resource: resource, Kind: "write", Pre: "a", Post: "b"}}
}

// TestZeroPermitReachesNothing checks that the zero permit, and a permit whose
// operation has ended, are refused.
func TestZeroPermitReachesNothing(t *testing.T) {
	x := begin(t, hosttest.New(1))
	over := permit(t, x.call("c_1"), perm.Write)
	over.End()
	over.End()
	op, err := x.call("c_2").Enter(t.Context())
	require.NoError(t, err)
	made := contexts.NewPermit(op, perm.Access(perm.Write, file))
	require.True(t, made.Covers(perm.Access(perm.Write, file)), "the control")
	for name, p := range map[string]ctxperm.Permit{"zero": {}, "ended": over} {
		t.Run(name, func(t *testing.T) {
			p.End()
			require.False(t, p.Covers(perm.Access(perm.Write, file)))
			_, err := p.RecordChange(t.Context(), changeOf(file))
			require.ErrorIs(t, err, ctxperm.ErrClosed)
			_, err = p.StoreContent(t.Context(), strings.NewReader("x"))
			require.ErrorIs(t, err, ctxperm.ErrClosed)
			require.ErrorIs(t, p.Claim(t.Context(), file), ctxperm.ErrClosed)
			require.ErrorIs(t, p.LockResource(t.Context(), file), ctxperm.ErrClosed)
			require.Nil(t, contexts.PermitCall(p))
		})
	}
}

// TestPermitCoversOnlyItsAccesses checks that a permit neither changes nor claims a
// resource that it does not cover.
func TestPermitCoversOnlyItsAccesses(t *testing.T) {
	x := begin(t, hosttest.New(1))
	reading, writing := permit(t, x.call("c_1"), perm.Read), permit(t, x.call("c_2"), perm.Read, perm.Write)
	for _, tc := range []struct {
		name     string
		p        ctxperm.Permit
		resource string
		want     error
	}{
		{"read only", reading, file, ctxperm.ErrDenied},
		{"another file", writing, file + "x", ctxperm.ErrDenied},
		{"its own", writing, file, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.p.RecordChange(t.Context(), changeOf(tc.resource))
			require.ErrorIs(t, err, tc.want)
			require.ErrorIs(t, tc.p.Claim(t.Context(), tc.resource), tc.want)
		})
	}
	require.True(t, reading.Covers(perm.Access(perm.Read, file)))
	require.False(t, reading.Covers(perm.Access(perm.Write, file)))
}

// TestFailedDecision checks that a failed decision leaves no operation
// that the call waits for.
func TestFailedDecision(t *testing.T) {
	refused, access := errors.New("no"), perm.Access(perm.Write, file)
	for name, gate := range map[string]callstate.AuthorizeFunc{
		"error": func(context.Context, perm.ResourceAccess) (callstate.Ruling, error) {
			return callstate.Ruling{}, refused
		},
		"panic": func(context.Context, perm.ResourceAccess) (callstate.Ruling, error) { panic(refused) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := begin(t, hosttest.New(1))
				x.gate = gate
				c := x.call("c_1")
				func() {
					defer func() { _ = recover() }()
					_, err := ctxperm.Authorize(t.Context(), contexts.New(c), access)
					require.ErrorIs(t, err, refused)
				}()
				require.NoError(t, c.Close(t.Context()))
			})
		})
	}
	_, err := ctxperm.Authorize(t.Context(), contexts.New(begin(t, hosttest.New(1)).call("c_1")))
	require.ErrorIs(t, err, ctxperm.ErrInvalid, "a permit for nothing is none")
}

// TestEndWaitsForRecord checks that End during a write of a record
// keeps the call from ending until the record is durable.
func TestEndWaitsForRecord(t *testing.T) {
	for name, record := range map[string]func(context.Context, ctxperm.Permit) error{
		"intend": func(ctx context.Context, p ctxperm.Permit) error {
			_, err := p.RecordChange(ctx, changeOf(file))
			return err
		},
		"claim": func(ctx context.Context, p ctxperm.Permit) error { return p.Claim(ctx, file) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hosttest.New(1)
				x := begin(t, h)
				release := make(chan struct{})
				h.OnPoint = func(id string) error {
					if strings.HasPrefix(id, "journal.append") {
						<-release
					}
					return nil
				}
				c := x.call("c_1")
				p := permit(t, c, perm.Write)
				recorded, closed := make(chan error, 1), make(chan error, 1)
				go func() { recorded <- record(t.Context(), p) }()
				synctest.Wait()
				p.End()
				go func() { closed <- c.Close(t.Context()) }()
				synctest.Wait()
				require.Empty(t, closed)
				close(release)
				require.NoError(t, <-closed)
				require.NoError(t, <-recorded)
				require.Nil(t, c.Start(), "its start stands too")
			})
		})
	}
}

// TestLockLastsUntilCallEnds checks that no other call of the transaction
// changes a locked resource before this call has ended. The next operation of
// the same call waits for the permit.
func TestLockLastsUntilCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := begin(t, hosttest.New(1))
		one := x.call("c_1")
		first, again, second := permit(t, one, perm.Write), permit(t, one, perm.Write), permit(t, x.call("c_2"), perm.Write)
		require.NoError(t, first.LockResource(t.Context(), file))
		require.NoError(t, second.LockResource(t.Context(), file+"x"))
		taken := make(chan error, 1)
		go func() { taken <- second.LockResource(t.Context(), file) }()
		own := make(chan error, 1)
		go func() { own <- again.LockResource(t.Context(), file) }()
		synctest.Wait()
		require.Empty(t, own)
		first.End()
		require.NoError(t, <-own)
		again.End()
		synctest.Wait()
		require.Empty(t, taken)
		x.locks.Leave("c_1")
		require.NoError(t, <-taken)
		second.End()
		x.locks.Leave("c_2")
		third := permit(t, x.call("c_3"), perm.Write)
		require.NoError(t, third.LockResource(t.Context(), file))
		third.End()
	})
}

// TestToolContextContent checks the call, its notes and its progress. A zero context
// has none of them.
func TestToolContextContent(t *testing.T) {
	var none ctxperm.ToolContext
	require.Equal(t, ctxperm.Call{}, none.Call())
	require.ErrorIs(t, none.Note(t.Context(), "id", 1), ctxperm.ErrClosed)
	none.Progress(1, 2, "nobody is there")

	x := begin(t, hosttest.New(1))
	live := x.call("c_1")
	tc := contexts.New(live)
	tc.Progress(1, 2, "half")
	require.Same(t, live, contexts.Call(tc))
	call := tc.Call()
	require.Equal(t, []string{"c_1", "k", "test", "t_1", "s_1"}, []string{call.ID, call.Key, call.Tool, call.Txn, call.Session})
	require.ErrorContains(t, tc.Note(t.Context(), "id", func() {}), "json")
	require.NoError(t, tc.Note(t.Context(), "id", 7))
}

// TestAnswers checks that only an answer with an approver allows a call.
func TestAnswers(t *testing.T) {
	require.True(t, ctxperm.Approve("kim").Approved())
	require.False(t, ctxperm.Approve("").Approved())
	require.False(t, ctxperm.Answer{}.Approved())
	no := ctxperm.Deny("kim", "not today")
	require.False(t, no.Approved())
	require.Equal(t, "kim", no.By())
	require.Equal(t, "not today", no.Why())

	said, err := ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		return ctxperm.Approve("kim"), nil
	}).Approve(t.Context(), ctxperm.ApprovalRequest{})
	require.NoError(t, err)
	require.True(t, said.Approved())
	said, _ = ctxperm.ApproverFunc(nil).Approve(t.Context(), ctxperm.ApprovalRequest{})
	require.False(t, said.Approved())
	require.True(t, said.Remembered().IsAbsent(), "a refusal is no standing grant")
}
