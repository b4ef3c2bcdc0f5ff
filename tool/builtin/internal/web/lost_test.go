package web_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// once breaks the first request of a method.
func once(method, how string) func(*http.Request) string {
	first := true
	return func(r *http.Request) string {
		if r.Method != method || !first {
			return ""
		}
		first = false
		return how
	}
}

// TestLostAnswers checks that the runtime asks the service about a call without
// a response, and reverts what the call did. If the service cannot tell, the
// outcome is unknown. The runtime does not repeat the request.
func TestLostAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*service)
		call    string
		status  tool.Status
		effects string // of the service, in the end
		later   revert.TxnState
	}{
		"found by its key":  {func(s *service) { s.drop = once("POST", "after") }, "item_create", tool.StatusFailed, "POST DELETE", revert.TxnReverted},
		"found after 500":   {func(s *service) { s.drop = once("POST", "500") }, "item_create", tool.StatusFailed, "POST DELETE", revert.TxnReverted},
		"asked by its key":  {func(s *service) { s.drop, s.keys, s.replays = once("POST", "after"), false, true }, "item_create", tool.StatusFailed, "POST DELETE", revert.TxnReverted},
		"found, and theirs": {func(s *service) { s.drop, s.hook = once("POST", "after"), s.theirsMeanwhile }, "item_create", tool.StatusUnknown, "POST", revert.TxnRevertedPartial},
		"asked, and theirs": {func(s *service) {
			s.drop, s.hook, s.keys, s.replays = once("POST", "after"), s.theirsMeanwhile, false, true
		}, "item_create", tool.StatusUnknown, "POST", revert.TxnRevertedPartial},
		"nobody to ask":  {func(s *service) { s.drop, s.keys = once("POST", "after"), false }, "item_create", tool.StatusUnknown, "POST", revert.TxnRevertedPartial},
		"may still come": {func(s *service) { s.drop, s.late = once("POST", "before"), time.Hour }, "item_create", tool.StatusUnknown, "", revert.TxnRevertedPartial},
		"did not come":   {func(s *service) { s.drop = once("POST", "before") }, "item_create", tool.StatusFailed, "", revert.TxnReverted},
		"put, and there": {func(s *service) { s.drop = once("PUT", "after") }, "item_put", tool.StatusFailed, "PUT DELETE", revert.TxnReverted},
		"put, not there": {func(s *service) { s.drop = once("PUT", "before") }, "item_put", tool.StatusFailed, "", revert.TxnReverted},
		"put, and theirs": {func(s *service) {
			s.drop = func(r *http.Request) string {
				if r.Method == http.MethodPut && s.items["own"] == nil {
					s.items["own"] = map[string]any{"id": "own", "name": "theirs"}
					return "before"
				}
				return ""
			}
		}, "item_put", tool.StatusUnknown, "", revert.TxnRevertedPartial},
		"refused":         {func(s *service) { s.drop = nil }, "bad", tool.StatusFailed, "", revert.TxnReverted},
		"no way back":     {func(s *service) { s.drop = once("DELETE", "after") }, "item_drop", tool.StatusUnknown, "DELETE", revert.TxnRevertedPartial},
		"undo lost, done": {func(s *service) { s.drop = once("DELETE", "after") }, "item_create", tool.StatusDone, "POST DELETE", revert.TxnReverted},
		"undo lost":       {func(s *service) { s.drop = each("DELETE", "before") }, "item_create", tool.StatusDone, "POST", revert.TxnRevertedPartial},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, func(s *service) { s.late = time.Nanosecond; test.change(s) })
			rt := runtimeOf(t, s)
			args := map[string]tool.Args{
				"item_create": {"name": "a"}, "item_put": {"id": "own", "name": "a"}, "bad": {"name": "bad"}, "item_drop": {"id": "old"},
			}[test.call]
			if test.call == "item_drop" {
				s.holding("old", map[string]any{})
			}
			if test.call == "bad" {
				test.call = "item_create"
			}
			tx := begin(t, rt)
			invoke(t, tx, test.call, args, test.status)
			rep, err := tx.Revert(t.Context(), revert.Options{})
			if test.later == revert.TxnRevertedPartial {
				require.ErrorIs(t, err, agent.ErrPartialRevert)
			} else {
				require.NoError(t, err, "%+v", rep)
			}
			require.Equal(t, test.effects, s.done())
		})
	}
}

// theirsMeanwhile changes the item of the first request, as another client,
// before the next request.
func (s *service) theirsMeanwhile(*http.Request) int {
	if s.items["i1"] != nil {
		s.items["i1"]["name"] = "theirs"
	}
	return 0
}

func each(method, how string) func(*http.Request) string {
	return func(r *http.Request) string {
		if r.Method == method {
			return how
		}
		return ""
	}
}

// TestSomebodyLooked checks that a person can resolve an outcome that the
// service cannot tell. The runtime rejects an answer about a known outcome.
func TestSomebodyLooked(t *testing.T) {
	for _, applied := range []bool{true, false} {
		s := newService(t, func(s *service) { s.drop, s.keys = once("POST", "after"), false })
		rt := runtimeOf(t, s)
		tx := begin(t, rt)
		out := invoke(t, tx, "item_create", tool.Args{"name": "a"}, tool.StatusUnknown)
		sure := record.Decided{Applied: applied, By: "somebody", Why: "looked"}
		require.NoError(t, rt.ResolveUnknown(t.Context(), out.Call, sure))
		require.ErrorIs(t, rt.ResolveUnknown(t.Context(), out.Call, sure), revert.ErrOutcomeKnown)
		rep, err := tx.Revert(t.Context(), revert.Options{})
		if applied {
			require.ErrorIs(t, err, agent.ErrPartialRevert, "it has to be reverted by hand")
			require.Equal(t, effect.Unknown, rep.NotReverted()[0].Outcome)
		} else {
			require.NoError(t, err, "%+v", rep)
		}
		require.Equal(t, "POST", s.done())
	}
	s := newService(t, nil)
	rt := runtimeOf(t, s)
	tx := begin(t, rt)
	out := invoke(t, tx, "item_create", tool.Args{"name": "a"}, tool.StatusDone)
	require.ErrorIs(t, rt.ResolveUnknown(t.Context(), out.Call, record.Decided{By: "somebody", Why: "looked"}), revert.ErrOutcomeKnown)
}
