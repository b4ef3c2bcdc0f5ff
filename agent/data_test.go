package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/agent/replay"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// ticketPolicy lets a session of ticket 7 greet, and no other one.
func ticketPolicy(t *testing.T) *rego.Engine {
	e, err := rego.Load(rego.Source{FS: fstest.MapFS{"p.rego": {Data: []byte("package remit\n\nallow contains \"ticket\" if input.session.data.ticket == 7\n")}}})
	require.NoError(t, err)
	return e
}

func greeter(t *testing.T) tool.Tool {
	greet, err := tool.Create("greet", "Greets.", func(_ context.Context, name string) (string, error) { return "hello " + name, nil }, tool.Pure())
	require.NoError(t, err)
	return greet
}

func greet(s *agent.Session) error {
	_, err := s.Update(context.Background(), func(tx *agent.Txn) error {
		_, err := tx.Invoke(context.Background(), "greet", "ann")
		return err
	})
	return err
}

// TestDataReachesRules decides the same call in sessions of different data in
// turns, so a decision that is remembered for one of them must not be used for
// another.
func TestDataReachesRules(t *testing.T) {
	rt, ctx := newRuntime(t, agent.Tools(greeter(t)), agent.Policy(ticketPolicy(t))), context.Background()
	seven := newSession(t, rt, agent.Data(map[string]int{"ticket": 7}))
	eight := newSession(t, rt, agent.Data(struct {
		Ticket int `json:"ticket"`
	}{8}))
	none := newSession(t, rt)
	for range 3 {
		require.NoError(t, greet(seven))
		require.ErrorIs(t, greet(eight), tool.ErrDenied)
		require.ErrorIs(t, greet(none), tool.ErrDenied)
	}
	require.JSONEq(t, `{"ticket":7}`, string(seven.Data()))
	require.Nil(t, none.Data())

	// A delegated session has the data of its parent, and no other data.
	child, err := seven.Delegate(ctx, perm.Principal{ID: "helper"})
	require.NoError(t, err)
	require.NoError(t, greet(child))
	_, err = eight.Delegate(ctx, perm.Principal{ID: "helper"}, agent.Data(map[string]int{"ticket": 7}))
	require.ErrorIs(t, err, tool.ErrInvalid)
	require.ErrorContains(t, err, "has the data of its parent")
	_, err = rt.ResumeSession(ctx, eight.Token(), agent.Data(map[string]int{"ticket": 7}))
	require.ErrorIs(t, err, tool.ErrInvalid)
}

// TestDataNeverChanges changes everything that a host program holds of the data.
func TestDataNeverChanges(t *testing.T) {
	keep := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		for i := range r.Session.Data {
			r.Session.Data[i] = 'x'
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	rt, raw := newRuntime(t, agent.Tools(greeter(t)), agent.Policy(keep)), json.RawMessage(`{"a":1}`)
	s := newSession(t, rt, agent.Data(raw))
	raw[2] = 'b'
	got := s.Data()
	got[2] = 'c'
	require.NoError(t, greet(s))
	require.Equal(t, `{"a":1}`, string(s.Data()))
}

func TestDataOfAnotherProcess(t *testing.T) {
	j, ctx := journal.Memory(), context.Background()
	first := newRuntime(t, agent.Journal(j), agent.Tools(greeter(t)), agent.Policy(ticketPolicy(t)))
	s := newSession(t, first, agent.Data(map[string]int{"ticket": 7}))
	child, err := s.Delegate(ctx, perm.Principal{ID: "helper"})
	require.NoError(t, err)
	require.NoError(t, greet(s))
	require.NoError(t, greet(child))
	second := newRuntime(t, agent.Journal(j), agent.Tools(greeter(t)), agent.Policy(ticketPolicy(t)))
	for _, token := range []string{s.Token(), child.Token()} {
		again, err := second.ResumeSession(ctx, token)
		require.NoError(t, err)
		require.JSONEq(t, `{"ticket":7}`, string(again.Data()))
		require.NoError(t, greet(again))

		// A replay decides with the same data.
		report, err := replay.Run(ctx, agent.RecordedDecisions(ctx, j, again.ID()), replay.Options{New: ticketPolicy(t)})
		require.NoError(t, err)
		require.Equal(t, 2, report.Same)
		require.Empty(t, report.Changes)
		require.Empty(t, report.Undecidable)
	}
}

func TestDataRefused(t *testing.T) {
	rt := newRuntime(t)
	fits := strings.Repeat("x", 64<<10-len(`{"a":""}`))
	_, err := rt.Session(context.Background(), perm.Principal{ID: "coder"}, agent.Data(map[string]string{"a": fits}))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		data any
		want string
	}{
		"list":     {[]string{"a"}, "must be a JSON object"},
		"null":     {nil, "must be a JSON object"},
		"nil map":  {map[string]int(nil), "must be a JSON object"},
		"text":     {"a", "must be a JSON object"},
		"function": {map[string]any{"a": func() {}}, "json: unsupported type"},
		"twice":    {json.RawMessage(`{"a":1,"a":2}`), `invalid JSON at "/a"`},
		"no JSON":  {json.RawMessage(`{`), ""},
		"empty":    {json.RawMessage(``), ""},
		"large":    {map[string]string{"a": fits + "x"}, "65537 bytes in canonical form; must be at most 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rt.Session(context.Background(), perm.Principal{ID: "coder"}, agent.Data(c.data))
			require.ErrorIs(t, err, tool.ErrInvalid)
			require.ErrorContains(t, err, "data of the session: "+c.want)
		})
	}
	_, err = rt.Session(context.Background(), perm.Principal{ID: "coder"}, agent.Data(map[string]int{}), agent.Data(map[string]int{}))
	require.ErrorContains(t, err, "set it once")
}
