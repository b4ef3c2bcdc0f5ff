package frameworktest

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool/wire"
)

// Try runs every check. A framework passes on the IDs of calls, so that a
// repeated call runs once.
func Try(t *testing.T, f Framework) {
	t.Run("undo", f.revert)
	t.Run("no outcome looks like another", f.outcomes)
	t.Run("a call runs once", f.once)
	t.Run("definitions", f.definitions)
}

// revert runs an agent that writes, is denied and writes again, and reverts all
// of it.
func (f Framework) revert(t *testing.T) {
	w := newTestEnv(t)
	before := w.tree()
	var ran Run
	id, err := w.session.Update(t.Context(), func(tx *agent.Txn) (err error) {
		ran, err = f.Agent(t, w.session, tx, [][]Ask{
			{{"call_1", "file_write", `{"path":"a.txt","content":"changed"}`}},
			{{"call_2", "file_write", `{"path":".git/config","content":"mine"}`}},
			{{"call_3", "file_write", `{"path":"sub/new.txt","content":"b"}`}, {"call_4", "file_write", `{"path":"c.txt","content":"c"}`}},
		})
		return err
	})
	require.NoError(t, err)
	f.checkReceived(t, ran, "call_1", "", false)
	f.checkReceived(t, ran, "call_2", "Denied: the history of the repository is out of reach. ", true)
	f.checkReceived(t, ran, "call_3", "", false)
	f.checkReceived(t, ran, "call_4", "", false)

	wrote := w.tree()
	require.Equal(t, "-rw-r----- changed", wrote["a.txt"])
	require.Contains(t, wrote["sub/new.txt"], " b")
	require.Contains(t, wrote["c.txt"], " c")
	require.Equal(t, before[".git/config"], wrote[".git/config"])

	kinds := w.journal(id)
	for call, want := range map[string][]record.Kind{
		"call_1": {record.KindStarted, record.KindDone}, "call_2": {record.KindDenied},
		"call_3": {record.KindStarted, record.KindDone}, "call_4": {record.KindStarted, record.KindDone},
	} {
		for _, kind := range want {
			require.Contains(t, kinds[w.session.CallID(call)], kind, "the journal knows %s by its id: %v", call, kinds)
		}
	}
	require.NotContains(t, kinds[w.session.CallID("call_2")], record.KindStarted)

	report, err := w.session.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err)
	require.Equal(t, "reverted", string(report.State))
	require.Equal(t, before, w.tree())
}

// expectedCall is a call and its expected result.
type expectedCall struct {
	Ask
	text   string
	failed bool
}

const invalid = "Not a valid call: "

// outcomes checks that each outcome is reported as it is, and ends no run.
func (f Framework) outcomes(t *testing.T) {
	w := newTestEnv(t)
	tx, err := w.session.Begin(t.Context())
	require.NoError(t, err)
	asks := []expectedCall{
		{Ask{"call_1", "say", `{"input":"hi"}`}, "HI", false},
		{Ask{"call_2", "ask_first", `{"input":"x"}`}, "Waiting for approval. Do not repeat the call.", true},
		{Ask{"call_3", "fail", `{"input":"x"}`}, "Failed without effect. it is broken. A retry may help.", true},
		{Ask{"call_4", "panic", `{"input":"x"}`}, "It is not known whether this call had an effect.", true},
		{Ask{"call_5", "file_write", `{"path":"a.txt"}`}, invalid, true},
		{Ask{"call_6", "file_write", `{"path":"a.txt","content":"x","mode":7}`}, invalid, true},
		{Ask{"call_7", "file_write", `{"path":1,"content":"x"}`}, invalid, true},
		{Ask{"call_8", "file_read", `{"path":"../out.txt"}`}, invalid, true},
		{Ask{"call_9", "say", `{"text":"hi"}`}, invalid, true},
	}
	if f.Text {
		asks = append(asks, expectedCall{Ask{"call_10", "file_write", `{"path":`}, invalid + "its arguments are a text that holds no JSON", true})
	}
	var turns [][]Ask
	for _, a := range asks {
		turns = append(turns, []Ask{a.Ask})
	}
	if f.Unknown != "" {
		turns = append(turns, []Ask{{"call_11", "file_wrote", `{}`}})
	}
	before := w.tree()
	ran, err := f.Agent(t, w.session, tx, turns)
	require.NoError(t, err, "the run goes on to its end")
	for _, a := range asks {
		f.checkReceived(t, ran, a.ID, a.text, a.failed)
	}
	if f.Unknown != "" {
		require.Contains(t, texts(ran)["call_11"], f.Unknown)
	}
	require.Equal(t, before, w.tree())
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert, "what is not known cannot be reverted")
}

// once repeats the same calls, as after a crash of the loop, in the same
// transaction and in another.
func (f Framework) once(t *testing.T) {
	w := newTestEnv(t)
	turns := [][]Ask{
		{{"call_1", "count", `{"input":"x"}`}},
		{{"call_2", "count", `{"input":"x"}`}, {"call_3", "count", `{"input":"x"}`}},
	}
	run := func(tx *agent.Txn) (ran Run, err error) {
		ran, err = f.Agent(t, w.session, tx, turns)
		return ran, err
	}
	var first, second Run
	_, err := w.session.Update(t.Context(), func(tx *agent.Txn) (err error) {
		if first, err = run(tx); err != nil {
			return err
		}
		second, err = run(tx)
		return err
	})
	require.NoError(t, err)
	require.EqualValues(t, 3, w.count.Load(), "calls that are alike, and are three")
	require.Equal(t, turnsOf(first), turnsOf(second))
	_, err = w.session.Update(t.Context(), func(tx *agent.Txn) error {
		third, err := run(tx)
		require.Equal(t, turnsOf(first), turnsOf(third))
		return err
	})
	require.NoError(t, err)
	require.EqualValues(t, 3, w.count.Load())
}

// turnsOf returns the results of each turn. A framework that runs the calls of
// a turn concurrently, without their IDs, may confuse equal ones.
func turnsOf(r Run) [][]string {
	out := make([][]string, 0, len(r.Received))
	for _, turn := range r.Received {
		var told []string
		for _, one := range turn {
			told = append(told, one.Text)
		}
		slices.Sort(told)
		out = append(out, told)
	}
	return out
}

// texts returns the results by ID, independent of the order in a turn.
func texts(r Run) map[string]string {
	out := map[string]string{}
	for _, turn := range r.Received {
		for _, told := range turn {
			out[told.ID] = told.Text
		}
	}
	return out
}

// definitions compares the schemas that the model received with those of the
// tools.
func (f Framework) definitions(t *testing.T) {
	w := newTestEnv(t)
	var ran Run
	_, err := w.session.Update(t.Context(), func(tx *agent.Txn) (err error) {
		ran, err = f.Agent(t, w.session, tx, nil)
		return err
	})
	require.NoError(t, err)
	shown, err := w.session.Tools(context.Background())
	require.NoError(t, err)
	a, err := wire.New(wire.Anthropic, shown...)
	require.NoError(t, err)
	raw, err := a.Definitions()
	require.NoError(t, err)
	var want []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	require.NoError(t, json.Unmarshal(raw, &want))
	require.Len(t, ran.Offered, len(want), "%v", slices.Collect(maps.Keys(ran.Offered)))
	for _, d := range want {
		require.NotNil(t, ran.Offered[d.Name], d.Name)
		require.Equal(t, canonical(t, d.Schema), canonical(t, ran.Offered[d.Name]), d.Name)
	}
}

// canonical returns a schema in one spelling. An empty "required" may be
// present or not.
func canonical(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	v, err := canon.Parse(raw, canon.DefaultLimits())
	require.NoError(t, err, "%s", raw)
	return strings.ReplaceAll(string(v.Canonical()), `"required":[],`, "")
}

// checkReceived checks the result of one call as the model received it.
func (f Framework) checkReceived(t *testing.T, r Run, id, text string, failed bool) {
	t.Helper()
	for _, turn := range r.Received {
		for _, told := range turn {
			if told.ID != id {
				continue
			}
			require.Contains(t, told.Text, text)
			require.Equal(t, failed, told.Failed, "%s is told as %q", id, told.Text)
			if !f.Marks && text != "" {
				require.Equal(t, failed, strings.HasPrefix(told.Text, "Error: "), told.Text)
			}
			return
		}
	}
	require.Fail(t, "the model was not told of the call", "%s: %v", id, r.Received)
}

// Session gives a test a session with the same tools, and a transaction of it.
func Session(t *testing.T, fn func(s *agent.Session, tx *agent.Txn)) {
	w := newTestEnv(t)
	tx, err := w.session.Begin(t.Context())
	require.NoError(t, err)
	fn(w.session, tx)
	require.NoError(t, tx.Commit(t.Context()))
}
