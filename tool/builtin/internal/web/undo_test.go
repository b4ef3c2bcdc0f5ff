package web_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	builtin "github.com/remit-dev/remit/tool/builtin/internal/web"
)

func callTool(t *testing.T, c builtin.Call) tool.Tool {
	if c.Name == "" {
		c.Name, c.Description = "one", "One call."
	}
	made, err := builtin.HTTPCall(c)
	require.NoError(t, err)
	return made
}

// revertCalls invokes one call and reverts it; meanwhile runs in between.
func revertCalls(t *testing.T, rt *agent.Runtime, name string, args tool.Args, meanwhile func()) (revert.Report, error) {
	tx := begin(t, rt)
	invoke(t, tx, name, args, tool.StatusDone)
	require.NoError(t, tx.Commit(t.Context()))
	if meanwhile != nil {
		meanwhile()
	}
	return rt.Revert(t.Context(), tx.ID(), revert.Options{})
}

// TestCancelledElsewhere: what takes an effect back may be a request to another URL,
// which leaves a trace.
func TestCancelledElsewhere(t *testing.T) {
	s := newService(t, nil)
	rt := runtimeOf(t, s, agent.Tools(callTool(t, builtin.Call{
		Method: "POST", URL: s.URL + "/items", Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
		Undo: &handle.Compensation{Item: s.URL + "/items/{id}", Method: "POST", URL: s.URL + "/items/{id}/cancel", Body: json.RawMessage(`{"why":"undone"}`)},
	})))
	rep, err := revertCalls(t, rt, "one", tool.Args{"name": "a"}, nil)
	require.NoError(t, err, "%+v", rep)
	require.JSONEq(t, `{"i1":{"id":"i1","name":"a","cancelled":true}}`, s.state())
	require.Equal(t, "POST CANCEL", s.done())
}

// TestPutBackByItsService uses a service that assigns a new version to a
// restored item. The same process can still revert an earlier call of that
// item. A later process reports a conflict.
func TestPutBackByItsService(t *testing.T) {
	for _, later := range []bool{false, true} {
		s := newService(t, func(s *service) { s.stamps = true })
		s.holding("x", map[string]any{"name": "first", "stamp": 0})
		journal := journal.Memory()
		rt := runtimeOf(t, s, agent.Journal(journal))
		tx := begin(t, rt)
		invoke(t, tx, "item_put", tool.Args{"id": "x", "name": "second"}, tool.StatusDone)
		invoke(t, tx, "item_put", tool.Args{"id": "x", "name": "third"}, tool.StatusDone)
		out := invoke(t, tx, "item_put", tool.Args{"id": "x", "name": "fourth"}, tool.StatusDone)
		require.NoError(t, tx.Commit(t.Context()))
		if !later {
			rep, err := rt.Revert(t.Context(), tx.ID(), revert.Options{})
			require.NoError(t, err, "%+v", rep)
			require.Contains(t, s.state(), "first")
			continue
		}
		rep, err := rt.Revert(t.Context(), out.Call, revert.Options{})
		require.NoError(t, err, "%+v", rep)
		rep, err = runtimeOf(t, s, agent.Journal(journal)).Revert(t.Context(), tx.ID(), revert.Options{})
		require.ErrorIs(t, err, agent.ErrPartialRevert)
		require.Equal(t, effect.Conflict, rep.NotReverted()[0].Outcome)
		require.Contains(t, s.state(), "third")
	}
}

// TestUndoOfARequest: each way in which a service can answer an undo is told as what
// it is, and changes nothing that it should not.
func TestUndoOfARequest(t *testing.T) {
	deleting := func(status int) func(*service) {
		return func(s *service) {
			s.hook = func(r *http.Request) int {
				if r.Method == http.MethodDelete {
					return status
				}
				return 0
			}
		}
	}
	for name, test := range map[string]struct {
		meanwhile func(*service)
		want      effect.Outcome
		why       string
	}{
		"refused":           {deleting(403), effect.Failed, "it answered 403"},
		"somebody faster":   {deleting(412), effect.Conflict, "concurrently"},
		"says done, is not": {deleting(200), effect.Failed, "is not reverted"},
		"gone already":      {func(s *service) { delete(s.items, "i1") }, effect.Already, ""},
		"does not answer":   {func(s *service) { s.hook = func(*http.Request) int { return 503 } }, effect.Failed, "answered 503"},
		"changed when it is done": {func(s *service) {
			looks := 0
			s.hook = func(r *http.Request) int {
				if looks++; r.Method == http.MethodGet && looks == 2 {
					s.put("i1", map[string]any{"name": "theirs"}, "")
				}
				return 0
			}
		}, effect.Conflict, "after the revert was planned"},
		"fine": {func(*service) {}, effect.Restored, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, nil)
			rt := runtimeOf(t, s)
			rep, err := revertCalls(t, rt, "item_create", tool.Args{"name": "a"}, func() { s.foreign(func() { test.meanwhile(s) }) })
			require.Equal(t, test.want.Clean(), err == nil, "%+v", rep)
			var item revert.ResourceResult
			for _, i := range rep.Items {
				if !strings.Contains(i.Resource, "#") {
					item = i
				}
			}
			require.Equal(t, test.want, item.Outcome, "%+v", rep)
			require.Contains(t, item.Why, test.why)
		})
	}
}

// TestKeysThatTellNothing: what the service says of a key is believed only where it
// is one thing.
func TestKeysThatTellNothing(t *testing.T) {
	for name, answer := range map[string]string{
		"two": `{"data":[{"id":"i1"},{"id":"i2"}]}`, "no list": `{"data":7}`, "no id": `{"data":[{"name":"a"}]}`, "elsewhere": `{"data":[{"id":"../admin"}]}`,
		"no JSON": `<html>`, "no member": `[]`, "an odd id": `{"data":[{"id":{"a":1}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, func(s *service) { s.drop = once("POST", "after") })
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("key") {
					_, _ = w.Write([]byte(answer))
					return
				}
				s.ServeHTTP(w, r)
			})
			rt := runtimeOf(t, s)
			tx := begin(t, rt)
			invoke(t, tx, "item_create", tool.Args{"name": "a"}, tool.StatusUnknown)
			rep, err := tx.Revert(t.Context(), revert.Options{})
			require.ErrorIs(t, err, agent.ErrPartialRevert)
			require.Equal(t, effect.Unknown, rep.NotReverted()[0].Outcome)
			require.Equal(t, "POST", s.done())
		})
	}
}

// TestAnswersThatTellNothing: what was made is not known from the answer, and found by
// its key, or not at all.
func TestAnswersThatTellNothing(t *testing.T) {
	for _, keys := range []bool{true, false} {
		s := newService(t, func(s *service) { s.keys, s.late = keys, time.Hour })
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				s.ServeHTTP(w, r)
				return
			}
			s.ServeHTTP(discard{}, r)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"made":true}`))
		})
		tx := begin(t, runtimeOf(t, s))
		want := tool.StatusUnknown
		if keys {
			want = tool.StatusFailed // reverted
		}
		invoke(t, tx, "item_create", tool.Args{"name": "a"}, want)
		if keys {
			require.Equal(t, "{}", s.state())
		}
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

// TestReplayRefused: a service that refuses the repeated request never had the effect.
func TestReplayRefused(t *testing.T) {
	for status, want := range map[int]effect.Outcome{422: effect.Already, 409: effect.Unknown, 500: effect.Unknown} {
		s := newService(t, func(s *service) { s.keys, s.replays, s.drop = false, true, once("POST", "before") })
		s.hook = func(r *http.Request) int {
			if r.Method == http.MethodPost {
				return status
			}
			return 0
		}
		tx := begin(t, runtimeOf(t, s))
		out, _ := tx.Invoke(t.Context(), "item_create", tool.Args{"name": "a"})
		require.Equal(t, want == effect.Already, out.Status == tool.StatusFailed, "%d: %+v", status, out.RevertResults)
		require.Equal(t, want, out.RevertResults[0].Outcome)
	}
}

// TestOneAfterTheOther: two transactions do not change one thing at once, and may
// both make things in one collection.
func TestOneAfterTheOther(t *testing.T) {
	s := newService(t, nil)
	rt := runtimeOf(t, s)
	one, other := begin(t, rt), begin(t, rt)
	invoke(t, one, "item_put", tool.Args{"id": "x", "name": "a"}, tool.StatusDone)
	out := invoke(t, other, "item_put", tool.Args{"id": "x", "name": "b"}, tool.StatusFailed)
	require.Contains(t, out.Error.Why, one.ID())
	invoke(t, one, "item_create", tool.Args{"name": "a"}, tool.StatusDone)
	invoke(t, other, "item_create", tool.Args{"name": "b"}, tool.StatusDone)
	_, err := one.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.JSONEq(t, `{"i2":{"id":"i2","name":"b"}}`, s.state())
}

// TestChangedBeforeItIsSent has another client change the item between the read
// and the request. The call fails with a conflict.
func TestChangedBeforeItIsSent(t *testing.T) {
	for name, id := range map[string]string{"changed": "old", "made": "new"} {
		s := newService(t, nil)
		s.holding("old", map[string]any{"name": "before"})
		s.hook = func(r *http.Request) int {
			if r.Method == http.MethodPut && len(s.effects) == 0 {
				s.put(id, map[string]any{"name": "theirs"}, "THEIRS")
			}
			return 0
		}
		out := invoke(t, begin(t, runtimeOf(t, s)), "item_put", tool.Args{"id": id, "name": "ours"}, tool.StatusFailed)
		require.Contains(t, out.Error.Why, "the item changed concurrently", name)
		require.Equal(t, "THEIRS", s.done())
	}
}

// TestPreviewAndRedo: a preview sends nothing with an effect; a request is not brought
// back.
func TestPreviewAndRedo(t *testing.T) {
	s := newService(t, nil)
	rt := runtimeOf(t, s)
	tx := begin(t, rt)
	invoke(t, tx, "item_create", tool.Args{"name": "a"}, tool.StatusDone)
	require.NoError(t, tx.Commit(t.Context()))
	rep, err := rt.Preview(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	require.True(t, rep.Complete())
	require.Equal(t, "POST", s.done())
	_, err = rt.Revert(t.Context(), tx.ID(), revert.Options{})
	require.NoError(t, err)
	rep, err = rt.Redo(t.Context(), tx.ID(), "somebody")
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.NotEmpty(t, rep.NotReverted())
	require.Equal(t, "POST DELETE", s.done())
}

// TestInterruptedRequests: what stops before it is sent had no effect; what stops
// after it is found out.
func TestInterruptedRequests(t *testing.T) {
	stop := errors.New("stopped")
	for point, test := range map[string]struct {
		status  tool.Status
		effects string
	}{"web.send": {tool.StatusFailed, ""}, "web.sent": {tool.StatusFailed, "POST DELETE"}} {
		h := hosttest.New(1)
		h.OnPoint = func(id string) error {
			if id == point {
				return stop
			}
			return nil
		}
		s := newService(t, nil)
		invoke(t, begin(t, runtimeOf(t, s, agent.Host(h))), "item_create", tool.Args{"name": "a"}, test.status)
		require.Equal(t, test.effects, s.done(), point)
	}
}

func agentTools(t *testing.T, calls ...builtin.Call) agent.Option {
	var all []tool.Tool
	for _, c := range calls {
		all = append(all, callTool(t, c))
	}
	return agent.Tools(all...)
}
