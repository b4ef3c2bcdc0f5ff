package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// bench is a house with tools that a test steers.
type workbench struct {
	*serverSetup
	url     string
	entered chan string   // has the label of each call of slow and sure
	release chan struct{} // lets one end
}

const asksForSure = `package remit
	allow contains "all" if not input.tool.name in {"sure", "sureroots", "hidden"}
	ask contains "sure" if input.tool.name in {"sure", "sureroots"}
	hide contains "not for you" if input.tool.name == "hidden"
	deny contains "not for you" if input.tool.name == "hidden"`

func newWorkbench(t *testing.T, opts mcp.Options, more ...agent.Option) *workbench {
	b := &workbench{entered: make(chan string, 64), release: make(chan struct{})}
	wait := func(ctx context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		var of struct{ Label string }
		if err := json.Unmarshal(in, &of); err != nil {
			return tool.Result{}, err
		}
		b.entered <- of.Label
		select {
		case <-b.release:
			return tool.Text("did " + of.Label), nil
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		}
	}
	then := func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		heard, err := asksClient(sdk.InputRequestMap{"a": approvalRequest()})(ctx, tc, in)
		if err == nil {
			_, err = wait(ctx, tc, in)
		}
		return heard, err
	}
	late := func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
		if r, err := wait(ctx, tc, in); err != nil {
			return r, err
		}
		return asksClient(sdk.InputRequestMap{"roots": &sdk.ListRootsParams{}})(ctx, tc, in)
	}
	all := []tool.Tool{
		b.made(t, "late", effect.Pure, late),
		b.made(t, "then", effect.Pure, then),
		b.made(t, "slow", effect.Pure, wait), b.made(t, "risky", effect.Pivot, wait), b.made(t, "hidden", effect.Pure, wait),
		b.made(t, "sure", effect.Pure, wait),
		b.made(t, "wrong", effect.Pure, func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, errors.New("it is wrong")
		}),
		b.made(t, "roots", effect.Pure, asksClient(sdk.InputRequestMap{"roots": &sdk.ListRootsParams{}})),
		b.made(t, "sureroots", effect.Pure, asksClient(sdk.InputRequestMap{"roots": &sdk.ListRootsParams{}})),
		b.made(t, "forms", effect.Pure, asksClient(
			sdk.InputRequestMap{"a": approvalRequest(), "b": approvalRequest()}, sdk.InputRequestMap{"a": approvalRequest()},
		)),
	}
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": asksForSure}})
	require.NoError(t, err)
	if opts.TaskAfter == 0 {
		opts.TaskAfter = time.Millisecond
	}
	b.serverSetup = newServerSetup(t, opts, append([]agent.Option{agent.SuspendForApproval(), agent.Policy(engine), agent.Tools(all...)}, more...)...)
	b.url = b.serve(mcp.HTTPOptions{})
	return b
}

func (b *workbench) made(t *testing.T, name string, class effect.Class, run tool.Execute) tool.Tool {
	made, err := tool.FromSpec(tool.Spec{
		Name: name, Input: json.RawMessage(`{"type":"object","properties":{"label":{"type":"string"}}}`),
		EffectClass: class, Destination: tool.NoDestination, Execute: run,
	})
	require.NoError(t, err)
	return made
}

func approvalRequest() *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: "Well?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"x": map[string]any{"type": "string"}}, "required": []string{"x"},
	}}
}

// asksClient asks round after round, and returns what it heard.
func asksClient(rounds ...sdk.InputRequestMap) tool.Execute {
	return func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
		client, _ := mcp.ClientOf(ctx)
		text := ""
		for _, round := range rounds {
			said, err := client.Request(ctx, round)
			if err != nil {
				return tool.Result{}, err
			}
			for _, key := range slices.Sorted(maps.Keys(said)) {
				r, _ := said[key].(*sdk.ElicitResult)
				text += fmt.Sprintf("%s=%v ", key, r.Content["x"])
			}
		}
		return tool.Text(text), nil
	}
}

func (b *workbench) as(id, caps string) plainClient {
	return b.plain(b.url, b.session(id).Token(), caps)
}

func label(text string) map[string]any { return map[string]any{"label": text} }

func accept(x string) map[string]any {
	return map[string]any{"action": "accept", "content": map[string]any{"x": x}}
}

// TestTaskOfALastingCall: a call that lasts goes on as a task, whose result is there when it has ended, as often as it is asked for.
// One that does not last is answered, and a client that knows no tasks waits.
func TestTaskOfALastingCall(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	c := b.as("coder", knowsTasks)
	id := c.task("slow", label("one"))
	require.Equal(t, "one", <-b.entered)
	_, call, err := revert.LoadCall(t.Context(), b.rt.Journal(), id)
	require.NoError(t, err, "the journal knows it")
	require.Equal(t, revert.PhaseStarted, call.Phase)
	is := c.get(id)
	require.Equal(t, "working", is.Status)
	require.NotNil(t, is.TTL)
	require.Positive(t, *is.TTL)
	b.release <- struct{}{}
	is = c.until(id, wireTask.hasEnded)
	require.Equal(t, "completed", is.Status)
	require.Nil(t, is.TTL, "it stays")
	require.Equal(t, "did one", is.Result.Content[0].Text)
	require.Equal(t, is, c.get(id))
	txn, err := revert.Load(t.Context(), b.rt.Journal(), call.Ref.Txn)
	require.NoError(t, err)
	require.Equal(t, revert.TxnCommitted, txn.State())
	c.cancel(id)
	require.Equal(t, is, c.get(id), "what has ended is not cancelled")

	patient := newWorkbench(t, mcp.Options{TaskAfter: time.Hour})
	require.Equal(t, "complete", patient.as("coder", knowsTasks).call("upper", map[string]any{"input": "x"}).ResultType)

	plain := b.as("coder", knowsNoTask)
	answer := make(chan reply, 1)
	go func() {
		r, _ := plain.ask(t.Context(), "tools/call", map[string]any{"name": "slow", "arguments": label("two")})
		answer <- r
	}()
	<-b.entered
	b.release <- struct{}{}
	require.Equal(t, "did two", (<-answer).Result.Content[0].Text)
}

// TestTaskTool: each call of a tool of Options.Tasks is a task, also one that has ended at once. A client that knows no tasks is
// told what it lacks, unless it is not shown the tool.
func TestTaskTool(t *testing.T) {
	b := newWorkbench(t, mcp.Options{Tasks: []string{"wrong", "hidden", "upper"}, TaskAfter: time.Hour})
	c := b.as("coder", knowsTasks)
	is := c.until(c.task("wrong", nil), wireTask.hasEnded)
	require.Equal(t, "completed", is.Status, "what a tool says of itself is a result")
	require.True(t, is.Result.IsError)
	is = c.until(c.task("upper", map[string]any{"input": "x"}), wireTask.hasEnded)
	require.Equal(t, "X", is.Result.Content[0].Text)

	plain := b.as("coder", knowsNoTask)
	r := plain.must("tools/call", map[string]any{"name": "wrong", "arguments": map[string]any{}})
	require.Equal(t, -32021, r.Error.Code)
	require.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(r.Error.Data))
	r = plain.must("tools/call", map[string]any{"name": "hidden", "arguments": map[string]any{}})
	none := plain.must("tools/call", map[string]any{"name": "nothing", "arguments": map[string]any{}})
	require.Equal(t, replace(none.Error.Message, "nothing", "hidden"), r.Error.Message)
	require.Equal(t, none.Error.Code, r.Error.Code)
}

// TestTaskMethodsNeedTheExtension: a client that does not declare it learns nothing, not even whether a task is there.
func TestTaskMethodsNeedTheExtension(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	in := b.session("coder")
	id := b.plain(b.url, in.Token(), knowsTasks).task("slow", label("one"))
	plain := b.plain(b.url, in.Token(), knowsNoTask)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		for _, task := range []string{id, "c_none"} {
			r := plain.must(method, map[string]any{"taskId": task, "inputResponses": map[string]any{}})
			require.NotNil(t, r.Error, method)
			require.Equal(t, -32021, r.Error.Code, method)
		}
	}
}

// TestTaskHeader: a header that names another task than the request is refused, and nothing is done.
func TestTaskHeader(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	c := b.as("coder", knowsTasks)
	id := c.task("slow", label("one"))
	<-b.entered
	wrong := c
	wrong.headers = map[string]string{"Mcp-Name": "c_other"}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		r := wrong.must(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}})
		require.Equal(t, 400, r.status)
		require.Equal(t, -32020, r.Error.Code)
	}
	r := wrong.must("tasks/cancel", map[string]any{"taskId": id, "taskid": "c_other"}) // which some would read as the other
	require.Equal(t, 400, r.status)
	right := c
	right.headers = map[string]string{"Mcp-Name": id}
	require.Equal(t, "working", right.get(id).Status, "it was not cancelled")
}

// TestTaskOfAnotherSession: a task that runs is none for another session, in the very words that there are for none at all.
func TestTaskOfAnotherSession(t *testing.T) {
	b := newWorkbench(t, mcp.Options{Tasks: []string{"forms"}})
	c, other := b.as("coder", knowsBoth), b.as("somebody else", knowsBoth)
	id := c.task("forms", nil)
	is := c.until(id, func(w wireTask) bool { return len(w.Inputs) == 2 })
	said := map[string]any{}
	for key := range is.Inputs {
		said[key] = accept("theirs")
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		r := other.must(method, map[string]any{"taskId": id, "inputResponses": said})
		none := other.must(method, map[string]any{"taskId": "c_none", "inputResponses": said})
		require.Equal(t, none.Error.Code, r.Error.Code)
		require.Equal(t, replace(none.Error.Message, "c_none", id), r.Error.Message)
	}
	require.Equal(t, is, c.get(id), "neither answered nor cancelled")
}

// TestTaskAsks: a task asks its client by tasks/get, which answers by tasks/update, each part when it can. A key is never used again.
func TestTaskAsks(t *testing.T) {
	b := newWorkbench(t, mcp.Options{Tasks: []string{"forms"}})
	c := b.as("coder", knowsBoth)
	id := c.task("forms", nil)
	asks := func(n int) func(wireTask) bool {
		return func(w wireTask) bool { return len(w.Inputs) == n }
	}
	first := c.until(id, asks(2))
	require.Equal(t, "input_required", first.Status)
	keys := slices.Sorted(maps.Keys(first.Inputs))
	require.Nil(t, c.update(id, map[string]any{keys[0]: accept("1"), "unknown": map[string]any{"ignored": true}}))
	rest := c.get(id)
	require.Equal(t, "input_required", rest.Status)
	require.Equal(t, keys[1:], slices.Sorted(maps.Keys(rest.Inputs)))
	require.Nil(t, c.update(id, map[string]any{keys[0]: accept("changed my mind")}), "what is answered is answered")
	require.Equal(t, -32602, c.update(id, map[string]any{keys[1]: "no answer"}).Code)
	require.Nil(t, c.update(id, map[string]any{keys[1]: map[string]any{"action": "accept", "content": map[string]any{"x": 7}}}))
	again := c.until(id, func(w wireTask) bool { return asks(1)(w) && w.Inputs[keys[1]] == nil })
	for key := range again.Inputs { // it did not fit, so it is asked again
		require.Nil(t, c.update(id, map[string]any{key: accept("2")}))
		keys = append(keys, key)
	}
	last := c.until(id, func(w wireTask) bool { return asks(1)(w) && w.Inputs[keys[2]] == nil })
	for key := range last.Inputs { // the second round
		require.NotContains(t, keys, key)
		require.Nil(t, c.update(id, map[string]any{key: accept("3")}))
	}
	is := c.until(id, wireTask.hasEnded)
	require.Equal(t, "a=1 b=2 a=3 ", is.Result.Content[0].Text)
}

// TestTaskAfterQuestions: a call that asked by requests before it lasted becomes a task with the last of them.
func TestTaskAfterQuestions(t *testing.T) {
	b := newWorkbench(t, mcp.Options{TaskAfter: 500 * time.Millisecond})
	c := b.as("coder", knowsBoth)
	asked := c.call("then", label("one"))
	require.Equal(t, "input_required", asked.ResultType)
	require.Empty(t, asked.TaskID)
	r := c.must("tools/call", map[string]any{
		"name": "then", "arguments": label("one"), "requestState": asked.State, "inputResponses": map[string]any{"a": accept("1")},
	})
	require.Equal(t, "task", r.Result.ResultType)
	require.Empty(t, r.Result.State)
	<-b.entered
	b.release <- struct{}{}
	is := c.until(r.Result.TaskID, wireTask.hasEnded)
	require.Equal(t, "a=1 ", is.Result.Content[0].Text)
}

// TestTaskForTheRequestThatKnowsThem: what a client knows it says with each request; one that goes on with a call and says nothing of
// tasks waits for the end.
func TestTaskForTheRequestThatKnowsThem(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	c := b.as("coder", knowsBoth)
	asked := c.call("then", label("one"))
	for asked.ResultType == "task" { // it lasted, before it asked
		c.cancel(asked.TaskID)
		asked = c.call("then", label("one"))
	}
	require.Equal(t, "input_required", asked.ResultType)
	c.caps = `{"elicitation":{}}`
	answer := make(chan reply, 1)
	go func() {
		r, _ := c.ask(t.Context(), "tools/call", map[string]any{
			"name": "then", "arguments": label("one"), "requestState": asked.State, "inputResponses": map[string]any{"a": accept("1")},
		})
		answer <- r
	}()
	<-b.entered
	for range 100 {
		c.must("tools/list", nil)
	}
	require.Empty(t, answer, "the client waits")
	b.release <- struct{}{}
	require.Equal(t, "complete", (<-answer).Result.ResultType)
}

// TestTaskFails: what ends with an error of the protocol is a task that failed with it, and stays so.
func TestTaskFails(t *testing.T) {
	b := newWorkbench(t, mcp.Options{Tasks: []string{"roots", "sureroots"}})
	c := b.as("coder", knowsTasks)
	id := c.task("roots", nil)
	is := c.until(id, wireTask.hasEnded)
	require.Equal(t, "failed", is.Status)
	require.Equal(t, -32021, is.Error.Code)
	require.Nil(t, is.Result)
	require.Equal(t, is, c.get(id))

	id = c.task("late", label("one"))
	<-b.entered
	b.release <- struct{}{}
	later := c.until(id, wireTask.hasEnded)
	require.Equal(t, "failed", later.Status, "long after it became a task")

	d := b.as("coder", knowsBoth)
	asked := d.task("sureroots", nil)
	for key := range d.get(asked).Inputs {
		require.Nil(t, d.update(asked, map[string]any{key: map[string]any{"action": "accept", "content": map[string]any{"approve": true}}}))
	}
	after := d.until(asked, wireTask.hasEnded)
	require.Equal(t, "failed", after.Status, "after it had waited for approval")

	var err error
	b.srv, err = mcp.New(b.rt, mcp.Options{})
	require.NoError(t, err)
	c.url = b.serve(mcp.HTTPOptions{}) // as it is after a restart
	d.url = c.url
	require.Equal(t, is, c.get(is.TaskID))
	require.Equal(t, later, c.get(id))
	require.Equal(t, after, d.get(asked))
}

// TestTaskApprovedByItsClient: a task that waits for approval asks the person at the client, whose answer is that of the question
// that they saw.
func TestTaskApprovedByItsClient(t *testing.T) {
	for _, tt := range []struct {
		name    string
		said    map[string]any
		status  string
		isError bool
	}{
		{"approved", map[string]any{"action": "accept", "content": map[string]any{"approve": true}}, "completed", false},
		{"refused", map[string]any{"action": "decline"}, "completed", true},
		{"not answered", map[string]any{"action": "cancel"}, "input_required", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newWorkbench(t, mcp.Options{Tasks: []string{"sure"}})
			c := b.as("coder", knowsBoth)
			id := c.task("sure", label("one"))
			is := c.get(id)
			require.Equal(t, "input_required", is.Status)
			require.Len(t, is.Inputs, 1)
			for key := range is.Inputs {
				require.Nil(t, c.update(id, map[string]any{"approval": tt.said, key + "0": tt.said}), "nobody asked that")
				require.Equal(t, is, c.get(id))
				require.Nil(t, c.update(id, map[string]any{key: tt.said}))
				require.Nil(t, c.update(id, map[string]any{key: tt.said}), "once more is no matter")
			}
			if tt.name == "approved" {
				<-b.entered
				require.Equal(t, "working", c.get(id).Status)
				b.release <- struct{}{}
			}
			is = c.until(id, func(w wireTask) bool { return w.Status == tt.status })
			if is.hasEnded() {
				require.Equal(t, tt.isError, is.Result.IsError)
			}
			require.Empty(t, b.entered, "it ran once at most")
		})
	}
}

// TestTaskOverdue: a task that runs for too long is stopped, and says why.
func TestTaskOverdue(t *testing.T) {
	b := newWorkbench(t, mcp.Options{TaskTimeout: 10 * time.Millisecond})
	c := b.as("coder", knowsTasks)
	is := c.until(c.task("slow", label("one")), wireTask.hasEnded)
	require.Equal(t, "cancelled", is.Status)
	require.Contains(t, is.StatusMessage, "as long as a task may")
	is = c.until(c.task("risky", label("two")), wireTask.hasEnded)
	require.Equal(t, "completed", is.Status)
	require.True(t, is.Result.IsError)
	require.Equal(t, "unknown", is.Result.Meta["remit.dev/status"])
}

// TestTasksAtOnce: more calls of a session than may run as tasks are waited for, until one has ended. Another session has its own.
func TestTasksAtOnce(t *testing.T) {
	b := newWorkbench(t, mcp.Options{MaxTasksPerSession: 1})
	c := b.as("coder", knowsTasks)
	first := c.task("slow", label("one"))
	<-b.entered
	second := make(chan reply, 1)
	go func() {
		r, _ := c.ask(t.Context(), "tools/call", map[string]any{"name": "slow", "arguments": label("two")})
		second <- r
	}()
	<-b.entered
	other := b.as("somebody else", knowsTasks).task("slow", label("three"))
	require.NotEmpty(t, other)
	for range 200 {
		require.Equal(t, "working", c.get(first).Status)
	}
	require.Empty(t, second, "the client waits")
	c.cancel(first)
	r := <-second
	require.Equal(t, "task", r.Result.ResultType, "there is room now")
	require.Equal(t, "working", c.get(r.Result.TaskID).Status)
}

// TestTaskNamedTwice: a call that its client named and that runs as a task is the same task when it is asked for again.
func TestTaskNamedTwice(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	c := b.as("coder", knowsTasks)
	named := map[string]any{"name": "slow", "arguments": label("one"), "_meta": map[string]any{"remit.dev/call-id": "mine"}}
	first, again := c.must("tools/call", named), c.must("tools/call", named)
	require.Equal(t, "task", first.Result.ResultType)
	require.Equal(t, first.Result.TaskID, again.Result.TaskID)
	<-b.entered
	b.release <- struct{}{}
	c.until(first.Result.TaskID, wireTask.hasEnded)
	require.Empty(t, b.entered, "it ran once")
	last := c.must("tools/call", named)
	require.Equal(t, "did one", last.Result.Content[0].Text)
}

// TestTaskCancelRaces cancels a task while it ends. The task ends once:
// completed with a committed transaction, or cancelled with a reverted one.
func TestTaskCancelRaces(t *testing.T) {
	b := newWorkbench(t, mcp.Options{})
	c := b.as("coder", knowsTasks)
	for range 40 {
		id := c.task("slow", label("one"))
		<-b.entered
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { _, _ = c.ask(t.Context(), "tasks/cancel", map[string]any{"taskId": id}) })
		}
		over := make(chan struct{})
		all.Go(func() {
			select {
			case b.release <- struct{}{}:
			case <-over:
			}
		})
		is := c.until(id, wireTask.hasEnded)
		close(over)
		all.Wait()
		require.Equal(t, is, c.get(id), "it has ended for good")
		_, call, err := revert.LoadCall(t.Context(), b.rt.Journal(), id)
		require.NoError(t, err)
		txn, err := revert.Load(t.Context(), b.rt.Journal(), call.Ref.Txn)
		require.NoError(t, err)
		require.Equal(t, map[string]revert.TxnState{"completed": revert.TxnCommitted, "cancelled": revert.TxnReverted}[is.Status], txn.State())
	}
}
