package revert_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// reply is the result of a request.
type reply struct {
	rep   revert.Report
	items []effect.Result
	err   error
}

func replyOf(rep revert.Report, err error) reply { return reply{rep: rep, err: err} }

// reportsFailure reports whether the result contains a failure.
func (a reply) reportsFailure() bool {
	if a.err != nil {
		return strings.Contains(a.err.Error(), errFault.Error())
	}
	for _, i := range a.rep.Items {
		a.items = append(a.items, i.Result)
	}
	said := func(i effect.Result) bool {
		return i.Outcome == effect.Unknown || (!i.Outcome.Clean() && strings.Contains(i.Why, errFault.Error()))
	}
	return slices.ContainsFunc(a.items, said) && (a.rep.State == "" || !a.rep.Complete())
}

// scenario is a request on a prepared journal.
type scenario struct {
	name    string
	prepare func(l *testEnv)
	do      request
	alive   bool    // by the process that prepared it; else by the next one
	again   request // the repeated request; nil: the same
	then    request // the same by another process; nil: the same as again
	finish  request // the final request; nil: none
}

type request func(ctx context.Context, l *testEnv) reply

// TestOneFailure reverts, redoes, recovers and erases, with one failing
// operation on the journal, the store or the tools. The operation fails before
// or after its effect, or every later operation fails too. No request reports a
// false success. A repeated request, by this process or the next one, ends like
// a run without the failure.
func TestOneFailure(t *testing.T) {
	every := 1
	if statcheck.Racing { // one goroutine: the race detector finds nothing here, and is slow
		every = 13
	}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			clean := s.begin(t)
			clean.faults.log = nil
			require.NoError(t, s.do(t.Context(), clean).err)
			ops := clean.faults.log
			require.NotEmpty(t, ops)
			done := clean.situation()
			want := s.finished(clean)
			for n := 0; n < len(ops); n += every {
				for i, w := range failureModes {
					if statcheck.Whole() || i == 0 || n%len(failureModes) == i || ops[n] == "put" {
						s.fail(t, n, w.how, w.next, done, want)
					}
				}
			}
		})
	}
}

// failureModes are the kinds of failure, each with the process that continues.
var failureModes = []struct {
	how  fault
	next bool
}{{fault{}, false}, {fault{lost: true}, false}, {fault{}, true}, {fault{lost: true, stuck: true}, true}}

func (s scenario) begin(t *testing.T) *testEnv {
	l := newTestEnv(t)
	s.prepare(l)
	if !s.alive {
		l.next()
	}
	return l
}

// finished makes the final request and returns the situation.
func (s scenario) finished(l *testEnv) finalState {
	if s.finish != nil {
		require.NoError(l.t, s.finish(l.t.Context(), l).err)
	}
	return l.situation()
}

// fail runs the scenario with a failure at its n-th operation.
func (s scenario) fail(t *testing.T, n int, how fault, next bool, done, want finalState) {
	l := s.begin(t)
	l.faults.left, l.faults.how = n, how
	got := s.do(t.Context(), l)
	at := fmt.Sprintf("%s, operation %d (%s), %+v, next %v", s.name, n, l.faults.at, how, next)
	require.NotEmpty(t, l.faults.at, at)
	if !got.reportsFailure() { // then the failure had no consequence
		require.NoError(t, got.err, at)
		require.Equal(t, done, l.situation(), "%s: %+v", at, got)
	}
	again := s.do
	if s.again != nil {
		again = s.again
	}
	if next {
		l.next()
		found, err := l.reverter.Recover(t.Context())
		require.NoError(t, err, at)
		require.Empty(t, found.Failed, at)
		if s.then != nil {
			again = s.then
		}
	}
	l.faults.left, l.faults.how = -1, fault{}
	got = again(t.Context(), l)
	require.NoError(t, got.err, at)
	require.Equal(t, want, s.finished(l), "%s: %+v", at, got)
}
