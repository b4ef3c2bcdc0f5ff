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

// asked is what came of something that was asked for.
type asked struct {
	rep   revert.Report
	items []effect.Result
	err   error
}

func told(rep revert.Report, err error) asked { return asked{rep: rep, err: err} }

// honest reports whether it was said that something failed.
func (a asked) honest() bool {
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

// scenario is something that is asked for once the journal is as it was prepared.
type scenario struct {
	name    string
	prepare func(l *lab)
	do      request
	alive   bool    // by the process that prepared it; else by the next one
	again   request // what is asked for once more; nil: the same
	then    request // and of another process; nil: the same as of this one
	finish  request // what is asked for in the end; nil: nothing
}

type request func(ctx context.Context, l *lab) asked

// TestOneFailure: of all that a process asks of its journal, of the world and of
// tools while it takes calls back, brings them back, recovers or erases, any one
// operation fails, with or without being done, or it fails and nothing works from
// then on. Nobody is told of a success that is none; and what is asked for once
// more, of this process or of the next one, comes to the same end as without the
// failure.
func TestOneFailure(t *testing.T) {
	every := 1
	if statcheck.Racing { // one goroutine: the detector has nothing to find here, and takes its time
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
				for i, w := range ways {
					if statcheck.Whole() || i == 0 || n%len(ways) == i || ops[n] == "put" {
						s.fail(t, n, w.how, w.next, done, want)
					}
				}
			}
		})
	}
}

// ways are how an operation fails, and who goes on: the process itself or the next
// one.
var ways = []struct {
	how  fault
	next bool
}{{fault{}, false}, {fault{lost: true}, false}, {fault{}, true}, {fault{lost: true, stuck: true}, true}}

func (s scenario) begin(t *testing.T) *lab {
	l := newLab(t)
	s.prepare(l)
	if !s.alive {
		l.next()
	}
	return l
}

// finished asks for what comes in the end, and looks.
func (s scenario) finished(l *lab) situation {
	if s.finish != nil {
		require.NoError(l.t, s.finish(l.t.Context(), l).err)
	}
	return l.situation()
}

// fail runs the scenario with a failure at its n-th operation.
func (s scenario) fail(t *testing.T, n int, how fault, next bool, done, want situation) {
	l := s.begin(t)
	l.faults.left, l.faults.how = n, how
	got := s.do(t.Context(), l)
	at := fmt.Sprintf("%s, operation %d (%s), %+v, next %v", s.name, n, l.faults.at, how, next)
	require.NotEmpty(t, l.faults.at, at)
	if !got.honest() { // then the failure was of no consequence
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
